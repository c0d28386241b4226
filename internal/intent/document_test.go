package intent

import (
	"errors"
	"strconv"
	"testing"
	"testing/quick"

	"optimist/internal/doc"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

func merger(t *testing.T, rules ...merge.PathRule) *merge.Merger {
	t.Helper()
	m, err := merge.New(merge.Sent, rules)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func revision(seq int64, source string) doc.Revision {
	r := doc.Revision{Numbers: doc.Numbers{SeqNo: seq, PrimaryTerm: 1}}
	if source != "" {
		r.Source = []byte(source)
	}
	return r
}

// made is what there is of a document of which others write a part: no numbers yet.
func made(source string) doc.Revision { return doc.Revision{Source: []byte(source)} }

// What a whole document becomes, revision by revision.
func TestADocumentIsReplayedFromItsOwnBase(t *testing.T) {
	read := Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, View: []byte(`{"n":10,"a":1}`), Stored: true, Read: true}
	view := Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, View: []byte(`{"n":10,"a":1}`)}
	wrote := Base{Numbers: read.Numbers, View: read.View, Stored: true}
	numbers := Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, Stored: true}
	const sent = `{"n":9,"a":1}`
	for name, c := range map[string]struct {
		d     Document
		cur   doc.Revision
		want  string // the body
		error error
		flags string // which of AsSent, Unchanged the draft has
	}{
		"the base itself":               {Document{Base: read}, revision(5, `{"n":10,"a":1}`), sent, nil, "sent"},
		"the base by its numbers alone": {Document{Base: read}, revision(5, ""), sent, nil, "sent"},
		"what it has read, of which only numbers are known": {
			Document{Base: Base{Numbers: read.Numbers, Stored: true, Read: true}}, revision(5, `{"n":10,"a":1}`), sent, nil, "sent"},
		"another document under its numbers":   {Document{Base: read}, revision(5, `{"n":7,"b":1}`), `{"n":6,"b":1}`, nil, ""},
		"the base in another form":             {Document{Base: read}, revision(5, `{"n": 10, "a": 1}`), sent, nil, "sent"},
		"what it wrote, of which it sees less": {Document{Base: wrote}, revision(5, `{"n":10}`), sent, nil, "sent"},
		"a newer revision":                     {Document{Base: read}, revision(6, `{"n":7,"a":2}`), `{"n":6,"a":2}`, nil, ""},
		"a newer one of which only numbers":    {Document{Base: read}, revision(6, ""), "", ErrUnread, ""},
		"what others in the write have made":   {Document{Base: read}, made(`{"n":7,"a":2}`), `{"n":6,"a":2}`, nil, ""},
		"a base that was stored otherwise":     {Document{Base: view}, revision(5, `{"n":10,"a":1,"b":1}`), `{"n":9,"a":1,"b":1}`, nil, ""},
		"the same, of which only numbers":      {Document{Base: view}, revision(5, ""), "", ErrUnread, ""},
		"deleted meanwhile":                    {Document{Base: read}, doc.Revision{}, "", ErrDeleted, ""},
		"deleted, and to be made again":        {Document{Base: read, Recreate: true}, doc.Revision{}, sent, nil, ""},
		"absent, as the client saw":            {Document{Base: Base{Absent: true}}, doc.Revision{}, sent, nil, "sent"},
		"made meanwhile":                       {Document{Base: Base{Absent: true}}, revision(1, `{"n":1,"b":2}`), `{"n":10,"b":2,"a":1}`, nil, ""},
		"a base without its body, moved":       {Document{Base: numbers}, revision(6, `{}`), "", ErrUnmergeable, ""},
		"the client's own guard":               {Document{Guard: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}}, revision(5, `{}`), sent, nil, "sent"},
		"the client's own guard, moved":        {Document{Guard: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}}, revision(6, `{}`), "", &MovedError{}, ""},
		"the client's own guard, deleted":      {Document{Guard: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}}, doc.Revision{}, "", &MovedError{}, ""},
		"a change that is there already":       {Document{Base: Base{Numbers: read.Numbers, View: []byte(sent)}}, revision(6, `{"n":4}`), `{"n":4}`, nil, "unchanged"},
		"what isn't JSON, at its base":         {Document{Base: read, Sent: []byte(`{`)}, revision(5, `{"n":10,"a":1}`), `{`, nil, "sent"},
		"what isn't JSON, at another revision": {Document{Base: read, Sent: []byte(`{`)}, revision(6, `{"n":10,"a":1}`), "", &tree.SyntaxError{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.d.Merger = merger(t, merge.PathRule{Path: "/n", Strategy: merge.Sum})
			if c.d.Sent == nil {
				c.d.Sent = []byte(sent)
			}
			d, err := c.d.Next(c.cur)
			flags := ""
			if d.AsSent {
				flags = "sent"
			}
			if d.Unchanged {
				flags += "unchanged"
			}
			if !sameError(err, c.error) || string(d.Body) != c.want || flags != c.flags {
				t.Errorf("%s %q %v; want %s %q %v", d.Body, flags, err, c.want, c.flags, c.error)
			}
			if again, _ := c.d.Next(c.cur); string(again.Body) != string(d.Body) {
				t.Errorf("asked again it is %s", again.Body)
			}
		})
	}
}

// sameError compares errors: structs by their type.
func sameError(got, want error) bool {
	var moved *MovedError
	var syntax *tree.SyntaxError
	var apply *ApplyError
	switch want.(type) {
	case nil:
		return got == nil
	case *MovedError:
		return errors.As(got, &moved)
	case *tree.SyntaxError:
		return errors.As(got, &syntax)
	case *ApplyError:
		return errors.As(got, &apply)
	}
	return errors.Is(got, want)
}

func TestOnlyAChangeOfWhatOthersLeftMayBeRepeated(t *testing.T) {
	m := merger(t, merge.PathRule{Path: "/n", Strategy: merge.Sum})
	base := Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, View: []byte(`{"n":10,"a":1}`), Stored: true}
	for name, c := range map[string]struct {
		sent, cur string
		want      bool
	}{
		"a field that is as it was":   {`{"n":10,"a":2}`, `{"n":11,"a":1}`, true},
		"a field that others changed": {`{"n":10,"a":2}`, `{"n":10,"a":3}`, false},
		"a sum":                       {`{"n":11,"a":1}`, `{"n":10,"a":1}`, false},
	} {
		d := Document{Base: base, Sent: []byte(c.sent), Merger: m}
		if got := d.Repeatable(nil, revision(6, c.cur)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if d.Repeatable(nil, doc.Revision{}) {
			t.Errorf("%s: of a document that is gone nothing can be told", name)
		}
	}
}

func TestADeleteTakesTheRevisionThatItsClientSaw(t *testing.T) {
	at := Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, Stored: true}
	read := Base{Numbers: at.Numbers, View: []byte(`{"a":1}`), Stored: true, Read: true}
	for name, c := range map[string]struct {
		d     Delete
		cur   doc.Revision
		error error
		stale bool
	}{
		"as it was":                    {Delete{Base: at}, revision(5, ""), nil, false},
		"another under its numbers":    {Delete{Base: read}, revision(5, `{"b":1}`), ErrUnmergeable, false},
		"changed":                      {Delete{Base: at}, revision(6, `{}`), ErrUnmergeable, false},
		"changed, and goes though":     {Delete{Base: at, Stale: true}, revision(6, `{}`), nil, true},
		"gone":                         {Delete{Base: at}, doc.Revision{}, ErrGone, false},
		"gone, whatever becomes of it": {Delete{Base: at, Stale: true}, doc.Revision{}, ErrGone, false},
	} {
		d, err := c.d.Next(c.cur)
		if !errors.Is(err, c.error) || err == nil && !d.Delete || (len(d.Overwrote) > 0) != c.stale {
			t.Errorf("%s: %+v %v", name, d, err)
		}
	}
}

// fixed is where steps of these tests find their inputs.
type fixed struct{}

func (fixed) Inputs(current []byte) *edit.Inputs { return &edit.Inputs{Current: current} }

func TestAPatchIsOfTheDocumentAsItIs(t *testing.T) {
	merge := MergePatch(`{"a":2}`)
	for name, c := range map[string]struct {
		p     Patch
		cur   doc.Revision
		want  string
		error error
		idle  bool
	}{
		"a document":                         {Patch{Edit: merge}, revision(5, `{"a":1,"b":1}`), `{"a":2,"b":1}`, nil, false},
		"one that says it already":           {Patch{Edit: merge}, revision(5, `{"b":1, "a":2}`), `{"b":1, "a":2}`, nil, true},
		"the same, written all the same":     {Patch{Edit: merge, WriteUnchanged: true}, revision(5, `{"a":2}`), `{"a":2}`, nil, false},
		"only its numbers":                   {Patch{Edit: merge}, revision(5, ""), "", ErrUnread, false},
		"none":                               {Patch{Edit: merge}, doc.Revision{}, "", doc.ErrMissing, false},
		"none, and one is made":              {Patch{Edit: merge, Upsert: true}, doc.Revision{}, `{"a":2}`, nil, false},
		"none, and that is made":             {Patch{Edit: merge, Upsert: true, Initial: []byte(`{"u":1}`)}, doc.Revision{}, `{"u":1}`, nil, false},
		"one where none should be":           {Patch{Edit: merge, OnlyNew: true}, revision(5, `{}`), "", ErrExists, false},
		"the revision that the client names": {Patch{Edit: merge, Guard: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}}, revision(5, `{}`), `{"a":2}`, nil, false},
		"another one":                        {Patch{Edit: merge, Guard: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}}, revision(6, `{}`), "", &MovedError{}, false},
		"what it can't be applied to":        {Patch{Edit: Operations{{Op: "remove", Path: "/x"}}}, revision(5, `{}`), "", &ApplyError{}, false},
		"a document that would be none":      {Patch{Edit: Operations{{Op: "replace", Path: "", Value: []byte("1")}}}, revision(5, `{}`), "", &ApplyError{}, false},
	} {
		c.p.Source = fixed{}
		d, err := c.p.Next(c.cur)
		if !sameError(err, c.error) || string(d.Body) != c.want || d.Unchanged != c.idle || c.p.Merges(c.cur) {
			t.Errorf("%s: %s %v %v", name, d.Body, d.Unchanged, err)
		}
	}
}

// upper is a transform that counts what it was applied to.
type upper struct {
	reads bool
	fail  error
}

func (u upper) Apply(candidate []byte, in *edit.Inputs) ([]byte, error) {
	if u.fail != nil {
		return nil, u.fail
	}
	return edit.MergePatch(candidate, []byte(`{"t":1}`), tree.Limits{})
}
func (u upper) ReadsCurrent() bool { return u.reads }
func (u upper) Repeatable() bool   { return !u.reads }

func TestATransformIsAppliedToWhatWouldBeWritten(t *testing.T) {
	base := Base{Numbers: doc.Numbers{SeqNo: 5, PrimaryTerm: 1}, View: []byte(`{"a":1}`), Stored: true}
	document := &Document{Base: base, Sent: []byte(`{"a":2}`), Merger: merger(t)}
	broken := &tree.SyntaxError{}
	for name, c := range map[string]struct {
		in    Intent
		t     upper
		cur   doc.Revision
		want  string
		error error
		flags string
	}{
		"what was sent":                        {document, upper{}, revision(5, `{"a":1}`), `{"a":2,"t":1}`, nil, "sent"},
		"what was merged":                      {document, upper{}, revision(6, `{"a":1,"b":1}`), `{"a":2,"b":1,"t":1}`, nil, ""},
		"not a merge that changes nothing":     {document, upper{}, revision(6, `{"a":2}`), `{"a":2}`, nil, "unchanged"},
		"one that reads what isn't read":       {document, upper{reads: true}, revision(5, ""), "", ErrUnread, ""},
		"what can't be looked into goes":       {document, upper{fail: broken}, revision(5, `{"a":1}`), `{"a":2}`, nil, "sent untransformed"},
		"a test that fails":                    {document, upper{fail: &edit.TestError{}}, revision(5, `{"a":1}`), "", &ApplyError{}, ""},
		"a patch whose work it takes back":     {&Patch{Edit: MergePatch(`{"t":2}`), Source: fixed{}}, upper{}, revision(5, `{"t":1}`), `{"t":1}`, nil, "unchanged"},
		"a patch of what can't be looked into": {&Patch{Edit: MergePatch(`{"t":2}`), Source: fixed{}}, upper{fail: broken}, revision(5, `{"t":1}`), "", &ApplyError{}, ""},
		"nothing of a delete":                  {&Delete{Base: base}, upper{}, revision(5, `{"a":1}`), "", nil, "sent"},
	} {
		d, err := (&Transformed{Intent: c.in, Rule: "r", Transformer: c.t, Source: fixed{}}).Next(c.cur)
		flags := ""
		if d.AsSent {
			flags = "sent"
		}
		if d.Unchanged {
			flags += "unchanged"
		}
		if d.Untransformed {
			flags += " untransformed"
		}
		if !sameError(err, c.error) || string(d.Body) != c.want || flags != c.flags {
			t.Errorf("%s: %s %q %v", name, d.Body, flags, err)
		}
	}
}

// However often a document is replayed, it is replayed from its own base: what others wrote meanwhile stays, and its own change
// counts once.
func TestReplaysDoNotAddUp(t *testing.T) {
	m := merger(t, merge.PathRule{Path: "/n", Strategy: merge.Sum})
	check := func(step int16, others []int16) bool {
		d := Document{Base: Base{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, View: []byte(`{"n":0}`), Stored: true},
			Sent: number(int64(step)), Merger: m}
		at := int64(0)
		for i, o := range others {
			at += int64(o)
			if _, err := d.Next(revision(int64(i)+2, string(number(at)))); err != nil {
				return false
			}
		}
		got, err := d.Next(revision(int64(len(others))+2, string(number(at))))
		return err == nil && string(got.Body) == string(number(at+int64(step)))
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func number(n int64) []byte {
	return []byte(`{"n":` + strconv.FormatInt(n, 10) + `}`)
}
