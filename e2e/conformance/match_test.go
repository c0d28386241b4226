package conformance

import (
	"strings"
	"testing"
)

func TestWantedMembersMustBeThereAndOthersMay(t *testing.T) {
	for _, c := range []struct {
		want, got string
		fits      bool
	}{
		{`{"a":1}`, `{"a":1,"b":2}`, true},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`{"a":9223372036854775807}`, `{"a":9223372036854775806}`, false},
		{`{"a":"!"}`, `{"b":1}`, true},
		{`{"a":"!"}`, `{"a":null}`, false},
		{`{"a":"*"}`, `{"a":{"b":1}}`, true},
		{`{"a":"*"}`, `{}`, false},
		{`{"a":"/^x+$/"}`, `{"a":"xx"}`, true},
		{`{"a":"/^x+$/"}`, `{"a":"xy"}`, false},
		{`{"a":[1,2]}`, `{"a":[1,2,3]}`, false},
		{`{"a":[{"b":1},{}]}`, `{"a":[{"b":1,"c":2},{"d":1}]}`, true},
		{`{"a":null}`, `{"a":null}`, true},
		{`{"a":null}`, `{}`, false},
		{`{"a":{}}`, `{"a":1}`, false},
	} {
		if bad := matchJSON(c.want, []byte(c.got)); (bad == "") != c.fits {
			t.Errorf("%s against %s: %q", c.want, c.got, bad)
		}
	}
}

// What passes must have been able to fail.
func TestEveryDamageToAnAnswerIsSeen(t *testing.T) {
	whole := func() *answer {
		body := []byte(`{"took":3,"_id":"1","n":1.10}`)
		return &answer{line: "HTTP/1.1 200 OK", status: 200, body: body, text: body,
			fields: [][2]string{{"Warning", "first"}, {"Warning", "second"}, {"X-elastic-product", "Elasticsearch"}, {"Content-Length", "29"}}}
	}
	damage := map[string]func(a *answer){
		"a number written anew":     func(a *answer) { a.text = []byte(strings.Replace(string(a.text), "1.10", "1.1", 1)) },
		"white space":               func(a *answer) { a.text = append(a.text, '\n') },
		"a status":                  func(a *answer) { a.line = "HTTP/1.1 201 Created" },
		"one of two fields":         func(a *answer) { a.fields = a.fields[1:] },
		"the order of fields":       func(a *answer) { a.fields[0], a.fields[2] = a.fields[2], a.fields[0] },
		"the spelling of a field":   func(a *answer) { a.fields[2][0] = "X-Elastic-Product" },
		"a field that was added":    func(a *answer) { a.fields = append(a.fields, [2]string{"Server", "proxy"}) },
		"a content coding declared": func(a *answer) { a.fields = append(a.fields, [2]string{"Content-Encoding", "gzip"}) },
	}
	c := &Case{Name: "n", Steps: []Step{{Request: "GET /"}}}
	told := func(a *answer) *told { return &told{run: newRun(c, ""), answers: []*answer{a}, errs: []error{nil}} }
	if bad := compare(told(whole()), told(whole()), Policy{}); len(bad) > 0 {
		t.Fatal(bad)
	}
	for what, do := range damage {
		a := whole()
		do(a)
		if bad := compare(told(whole()), told(a), Policy{}); len(bad) == 0 {
			t.Errorf("%s was not seen", what)
		}
	}
	slower := whole()
	slower.text = []byte(strings.Replace(string(slower.text), `"took":3`, `"took":17`, 1))
	own := whole()
	own.fields = append(own.fields, [2]string{"Optimist-Outcome", "guarded"}, [2]string{"ETag", `"1-1"`})
	if bad := compare(told(whole()), told(slower), Policy{}); len(bad) > 0 {
		t.Error("time is a difference:", bad)
	}
	if bad := compare(told(whole()), told(own), Policy{Own: []string{"optimist-", "etag"}}); len(bad) > 0 {
		t.Error("optimist's own fields are a difference:", bad)
	}
}
