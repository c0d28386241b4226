package respond

import "testing"

func TestANumberIsReplacedInItsPlace(t *testing.T) {
	for _, c := range []struct {
		body string
		n    int64
		want string
	}{
		{`{"a":{"_seq_no":1}, "_seq_no" : 12 ,"b":2}`, 7, `{"a":{"_seq_no":1}, "_seq_no" : 7 ,"b":2}`},
		{`{"_seq_no":7}`, 123456789012, `{"_seq_no":123456789012}`},
		{`{"_seq_no":7}`, 7, `{"_seq_no":7}`},
		{`{"_seq_no":"7"}`, 8, `{"_seq_no":"7"}`},
		{`{"a":{"_seq_no":7}}`, 8, `{"a":{"_seq_no":7}}`},
		{``, 8, ``},
	} {
		body := []byte(c.body)
		if got := string(setNumber(body, "_seq_no", c.n)); got != c.want || string(body) != c.body {
			t.Errorf("%s: %s, want %s; and the body is %s", c.body, got, c.want, body)
		}
	}
}
