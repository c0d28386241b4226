package doubt

import (
	"testing"

	"optimist/internal/doc"
)

func revision(seq, version int64, source string) *doc.Revision {
	return &doc.Revision{Numbers: doc.Numbers{SeqNo: seq, PrimaryTerm: 1}, Version: version, Source: []byte(source)}
}

// One write has been made since the guard: if it left something else, it was another client's.
func TestTheNextRevisionShowsWhoseWriteItIs(t *testing.T) {
	for name, one := range map[string]struct {
		cur    *doc.Revision
		exact  bool
		others bool
	}{
		"something else, next":        {revision(8, 4, `{"n":2}`), true, true},
		"the same, next":              {revision(8, 4, ` {"n":1} `), true, false},
		"something else, two later":   {revision(9, 5, `{"n":2}`), true, false},
		"something else, in a rework": {revision(8, 4, `{"n":2}`), false, false},
	} {
		var d Record
		d.Send(revision(7, 3, `{"n":0}`), []byte(`{"n":1}`))
		if got := d.OthersWrote(one.cur, one.exact); got != one.others {
			t.Errorf("%s: %v", name, got)
		}
	}
	var d Record
	d.Send(revision(7, 3, `{}`), nil)
	if !d.OthersWrote(revision(9, 9, `{}`), false) {
		t.Error("a delete leaves nothing")
	}
}

func TestAConflictIsOpenUntilItIsDispelled(t *testing.T) {
	var d Record
	d.Send(revision(7, 3, `{}`), []byte(`{"n":1}`))
	if d.Open() {
		t.Error("in doubt before any answer")
	}
	d.Conflicted("", "2")
	if c := d.Conflict(); !d.Open() || c.Shard != "2" || c.Guard.SeqNo != 7 || c.Sent.After(c.Answered) {
		t.Errorf("after a conflict: %+v", d)
	}
	if d.Dispel(); d.Open() || !d.StillAt(revision(7, 3, `{}`)) {
		t.Errorf("dispelled: %+v", d)
	}
}

func TestADocumentMayHaveBeenMadeAnew(t *testing.T) {
	var d Record
	d.Send(revision(7, 3, `{}`), []byte(`{}`))
	for version, anew := range map[int64]bool{0: false, 1: true, 3: true, 4: false} {
		if got := d.MayBeAnew(revision(9, version, `{}`)); got != anew {
			t.Errorf("version %d: %v", version, got)
		}
	}
	if !d.StillAt(revision(7, 3, `{}`)) || d.StillAt(revision(8, 4, `{}`)) {
		t.Error("the guard's revision isn't known again")
	}
	var none Record
	none.Send(&doc.Revision{}, []byte(`{}`))
	if !none.MayBeAnew(revision(9, 9, `{}`)) || none.StillAt(&doc.Revision{}) {
		t.Error("where there was no document, any may be another")
	}
}
