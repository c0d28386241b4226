package jsontext

import "testing"

func TestStringsAreWrittenAsPeopleReadThem(t *testing.T) {
	if got := string(AppendString([]byte("x:"), "a < b && \"c\" > \x00\xff\n")); got != `x:"a < b && \"c\" > \u0000\ufffd\n"` {
		t.Error(got)
	}
	got, err := Marshal(map[string]any{"a&b": []string{"<"}})
	if err != nil || string(got) != `{"a&b":["<"]}` {
		t.Errorf("%s %v", got, err)
	}
}
