package merge

import (
	"errors"
	"strings"
	"testing"
)

// Two clients found no document. One made it, others changed it, and then the second sends what it has made of the same defaults.
func TestADefaultOfANewDocumentUndoesNothing(t *testing.T) {
	m, err := New(Sent, []PathRule{{Path: "/count", Strategy: Sum}, {Path: "/low", Strategy: Min}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ made, sent, current, want string }{
		"a default stays as others have set it": {
			`{"state":"open","by":"a"}`, `{"state":"open","by":"b"}`, `{"state":"closed","by":"a"}`, `{"state":"closed","by":"b"}`},
		"also in an object": {
			`{"o":{"x":1,"y":null}}`, `{"o":{"x":1,"y":2}}`, `{"o":{"x":9,"y":null}}`, `{"o":{"x":9,"y":2}}`},
		"also one that others took out": {`{"a":1,"b":2}`, `{"a":1,"b":3}`, `{"b":2}`, `{"b":3}`},
		"written otherwise":             {`{"a":"\u0041"}`, `{"a":"A"}`, `{"a":"B"}`, `{"a":"B"}`},
		"what only the first put in isn't taken out": {
			`{"a":1,"own":true}`, `{"a":1}`, `{"a":1,"own":true,"more":2}`, `{"a":1,"own":true,"more":2}`},
		"sums count from nothing":                    {`{"count":1}`, `{"count":1}`, `{"count":3}`, `{"count":4}`},
		"so does the least":                          {`{"low":5}`, `{"low":5}`, `{"low":7}`, `{"low":5}`},
		"lists go by their elements":                 {`{"l":["x"]}`, `{"l":["y"]}`, `{"l":["x","z"]}`, `{"l":["x","z","y"]}`},
		"an entry that both began with counts once":  {`{"l":["x"]}`, `{"l":["x","y"]}`, `{"l":["x","z"]}`, `{"l":["x","z","y"]}`},
		"and not at all if others have taken it out": {`{"l":["x","x"]}`, `{"l":["x","y"]}`, `{"l":["z"]}`, `{"l":["z","y"]}`},
		"most others have sent it": {
			`{"l":[],"a":1} {"l":["x"],"a":2} {"l":["x"],"a":2}`, `{"l":["x","y"],"a":2}`, `{"l":["z"],"a":3}`, `{"l":["z","y"],"a":3}`},
		"one of several others has sent it": {
			`{"l":[],"a":1} {"l":["x"],"a":2} {"l":[],"a":1}`, `{"l":["x","y"],"a":2}`, `{"l":["z"],"a":3}`, `{"l":["z","x","y"],"a":2}`},
		"one that can't be read":      {`[ {"a":1} {"a":1} {"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2}`},
		"it isn't known how it began": {``, `{"state":"open"}`, `{"state":"closed"}`, `{"state":"open"}`},
		"nor can it be read":          {`[`, `{"state":"open"}`, `{"state":"closed"}`, `{"state":"open"}`},
	} {
		var made [][]byte
		for _, d := range strings.Fields(c.made) {
			made = append(made, []byte(d))
		}
		after := m.Guessing().AfterCreation(func() [][]byte { return made })
		r, err := after.Merge(nil, []byte(c.sent), []byte(c.current))
		if err != nil || string(r.Doc) != c.want || !r.Echo {
			t.Errorf("%s: %s, echo %t, %v; want %s", name, r.Doc, r.Echo, err, c.want)
		}
		if r, err = after.Merge([]byte(`{}`), []byte(c.sent), []byte(`{}`)); err != nil || r.Echo || string(r.Doc) != c.sent {
			t.Errorf("%s, but there was a document: %s, echo %t, %v", name, r.Doc, r.Echo, err)
		}
	}
}

// What two new documents both say under `fail` may be a claim of each: it is no default.
func TestAClaimInANewDocumentIsNoDefault(t *testing.T) {
	m, err := New(Sent, []PathRule{{Path: "/owner", Strategy: Fail}})
	if err != nil {
		t.Fatal(err)
	}
	after := m.Guessing().AfterCreation(func() [][]byte { return [][]byte{[]byte(`{"owner":"x","n":1}`)} })
	var conflict *ConflictError
	if _, err := after.Merge(nil, []byte(`{"owner":"x","n":1}`), []byte(`{"owner":"x","n":2}`)); !errors.As(err, &conflict) {
		t.Errorf("%v, want a conflict", err)
	}
	r, err := after.Merge(nil, []byte(`{"n":1}`), []byte(`{"owner":"x","n":2}`))
	if err != nil || string(r.Doc) != `{"owner":"x","n":2}` {
		t.Errorf("%s, %v", r.Doc, err)
	}
}
