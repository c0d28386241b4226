package merge

import (
	"fmt"
	"testing"
)

// What the client and others have put in says whether it has seen what they did. Then lists and sums are merged alike.
func TestWhatAClientLacksShowsThatItsMoveIsNoEcho(t *testing.T) {
	m := sums(t)
	for range 8 { // other documents, with small steps
		guessed(t, m, `{"n":0}`, `{"n":1}`, `{"n":1}`)
	}
	for name, c := range map[string]struct {
		base, sent, current, want string
		echo                      bool
	}{
		"it lacks the others' entry": {
			`{"n":0,"tx":[]}`, `{"n":300,"tx":[{"id":"B"}]}`, `{"n":500,"tx":[{"id":"A"}]}`, `{"n":800,"tx":[{"id":"A"},{"id":"B"}]}`, false},
		"it lacks the others' member": {
			`{"n":0,"tx":{}}`, `{"n":300,"tx":{"b":1}}`, `{"n":500,"tx":{"a":1}}`, `{"n":800,"tx":{"a":1,"b":1}}`, false},
		"nothing shows it": {`{"n":0}`, `{"n":300}`, `{"n":500}`, `{"n":500}`, true},
		"it has one entry of two, and the rest of the number": {
			`{"n":0,"tx":[]}`, `{"n":999,"tx":["A"]}`, `{"n":1000,"tx":["A","B"]}`, `{"n":1000,"tx":["A","B","A"]}`, true},
		"it has two entries that others have, too: nothing of it counts twice": {
			`{"n":0,"tx":[]}`, `{"n":2,"tx":["A","B"]}`, `{"n":2,"tx":["A","B"]}`, `{"n":2,"tx":["A","B"]}`, true},
		"lines and their total agree": {
			`{"log":[],"n":0,"who":[]}`, `{"log":["tea","pie"],"n":7,"who":["bert"]}`, `{"log":["tea","pie"],"n":7,"who":["anna"]}`,
			`{"log":["tea","pie"],"n":7,"who":["anna","bert"]}`, true},
		"it has the id that another has made up": {
			`{"n":0,"tx":[{"id":"S"}]}`, `{"n":1,"tx":[{"id":"A","x":1},{"id":"S"}]}`, `{"n":1,"tx":[{"id":"A","x":1},{"id":"S"}]}`,
			`{"n":1,"tx":[{"id":"A","x":1},{"id":"S"}]}`, true},
		"it has that, and goes on": {
			`{"n":0,"tx":[]}`, `{"n":2,"tx":[{"id":"A"},{"id":"B"}]}`, `{"n":1,"tx":[{"id":"A"}]}`, `{"n":2,"tx":[{"id":"A"},{"id":"B"}]}`, true},
		"it has an entry with the time that another has taken from its clock": {
			`{"n":0,"log":[]}`, `{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"},"new"]}`,
			`{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"}]}`, `{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"},"new"]}`, true},
		"the same, without a T": {
			`{"n":0,"log":[]}`, `{"n":1,"log":[{"at":"2026-01-02 03:04:05.678"}]}`, `{"n":1,"log":[{"at":"2026-01-02 03:04:05.678"}]}`,
			`{"n":1,"log":[{"at":"2026-01-02 03:04:05.678"}]}`, true},
		"others may well say again in the same millisecond what was said before": {
			`{"n":0,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"in","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"in","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":2,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"in","at":"2026-01-02T03:04:05.678Z"},` +
				`{"code":"in","at":"2026-01-02T03:04:05.678Z"}]}`, false},
		"the same, and not in the same microsecond": {
			`{"n":0,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"in","at":"2026-01-02T03:04:05.678901Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"in","at":"2026-01-02T03:04:05.678901Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"in","at":"2026-01-02T03:04:05.678901Z"}]}`, true},
		"others don't say in the same millisecond what nobody has said": {
			`{"n":0,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"out","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"out","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":1,"log":[{"code":"in","at":"2026-01-02T03:04:05.001Z"},{"code":"out","at":"2026-01-02T03:04:05.678Z"}]}`, true},
		"others may well have the same second": {
			`{"n":0,"log":[]}`, `{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05Z"}]}`, `{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05Z"}]}`,
			`{"n":2,"log":[{"by":"A","at":"2026-01-02T03:04:05Z"},{"by":"A","at":"2026-01-02T03:04:05Z"}]}`, false},
		"others may well have the same day": {
			`{"n":0,"log":[]}`, `{"n":1,"log":[{"due":"2026-01-02T00:00:00.000Z"}]}`, `{"n":1,"log":[{"due":"2026-01-02T00:00:00.000Z"}]}`,
			`{"n":2,"log":[{"due":"2026-01-02T00:00:00.000Z"},{"due":"2026-01-02T00:00:00.000Z"}]}`, false},
		"others may well have the same end of a day": {
			`{"n":0,"log":[]}`, `{"n":1,"log":[{"until":"2026-01-02T23:59:59.999Z"}]}`, `{"n":1,"log":[{"until":"2026-01-02T23:59:59.999Z"}]}`,
			`{"n":2,"log":[{"until":"2026-01-02T23:59:59.999Z"},{"until":"2026-01-02T23:59:59.999Z"}]}`, false},
		"all entries have one time": {
			`{"n":0,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"},{"by":"B","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":1,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"},{"by":"B","at":"2026-01-02T03:04:05.678Z"}]}`,
			`{"n":2,"log":[{"by":"A","at":"2026-01-02T03:04:05.678Z"},{"by":"B","at":"2026-01-02T03:04:05.678Z"},` +
				`{"by":"B","at":"2026-01-02T03:04:05.678Z"}]}`, false},
		"the entries have no ids": {
			`{"n":0,"tx":[]}`, `{"n":1,"tx":[{"x":1}]}`, `{"n":1,"tx":[{"x":1}]}`, `{"n":2,"tx":[{"x":1},{"x":1}]}`, false},
		"both have set the same in an entry": {
			`{"n":0,"tx":[{"id":1,"x":0}]}`, `{"n":1,"tx":[{"id":1,"x":1}]}`, `{"n":1,"tx":[{"id":1,"x":1}]}`, `{"n":2,"tx":[{"id":1,"x":1}]}`, false},
		"an entry that others have changed may be as it was again": {
			`{"n":0,"tx":["off"]}`, `{"n":999,"tx":["off"]}`, `{"n":1000,"tx":["on"]}`, `{"n":1000,"tx":["on"]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if r := guessed(t, m, c.base, c.sent, c.current); string(r.Doc) != c.want || r.Echo != c.echo {
				t.Errorf("%s, echo %t; want %s, echo %t", r.Doc, r.Echo, c.want, c.echo)
			}
		})
	}
}

// What a client didn't send as a part is as in the base. So it doesn't show that the client has seen nothing of what others have put in. A
// wrong base would move the number by what all others have moved it, and the next wrong base by twice as much.
func TestAPartShowsNothingOfWhatItLeavesOut(t *testing.T) {
	m := sums(t).Guessing().OfParts()
	for range 8 { // other documents, with small steps
		guessed(t, m, `{"n":0}`, `{"n":1}`, `{"n":1}`)
	}
	for name, c := range map[string]struct {
		base, sent, current, want string
		echo                      bool
	}{
		"a list": {`{"n":0,"tx":[]}`, `{"n":300,"tx":[]}`, `{"n":500,"tx":["A"]}`, `{"n":500,"tx":["A"]}`, true},
		"a list of an object": {
			`{"n":0,"o":{"tx":[],"x":0}}`, `{"n":300,"o":{"tx":[],"x":1}}`, `{"n":500,"o":{"tx":["A"],"x":0}}`,
			`{"n":500,"o":{"tx":["A"],"x":1}}`, true},
		"a new member": {`{"n":0}`, `{"n":300}`, `{"n":500,"a":1}`, `{"n":500,"a":1}`, true},
		"but the part has a list without the others' entry": {
			`{"n":0,"tx":[]}`, `{"n":300,"tx":["B"]}`, `{"n":500,"tx":["A"]}`, `{"n":800,"tx":["A","B"]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if r := guessed(t, m, c.base, c.sent, c.current); string(r.Doc) != c.want || r.Echo != c.echo {
				t.Errorf("%s, echo %t; want %s, echo %t", r.Doc, r.Echo, c.want, c.echo)
			}
		})
	}
}

// One id of each of a document's lists is enough.
func TestARepeatCountsOnceInAllOfTheDocument(t *testing.T) {
	m := sums(t)
	sent := `{"log":[{"id":"A"}],"n":1,"tags":["red"]}`
	if r := guessed(t, m, `{"log":[],"n":0,"tags":[]}`, sent, sent); string(r.Doc) != sent || !r.Echo {
		t.Errorf("%s, echo %t", r.Doc, r.Echo)
	}
}

func BenchmarkAGuessedBase(b *testing.B) {
	m := sums(b).Guessing()
	entries := ""
	for i := range 100 {
		entries += fmt.Sprintf(`{"id":"t%d","amount":%d},`, i, i)
	}
	doc := func(n int, id string) []byte { return fmt.Appendf(nil, `{"log":[%s{"id":%q}],"n":%d}`, entries, id, n) }
	base, sent, current := doc(0, "S"), doc(300, "A"), doc(500, "B")
	for b.Loop() {
		if _, err := m.Merge(base, sent, current); err != nil {
			b.Fatal(err)
		}
	}
}
