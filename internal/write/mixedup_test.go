package write

import (
	"errors"
	"strings"
	"testing"

	"optimist/internal/upstream"
)

const (
	writtenAnother  = `{"_index":"shop","_id":"2","_version":9,"result":"updated","_seq_no":90,"_primary_term":1}`
	writtenInOther  = `{"_index":"orders","_id":"1","_version":9,"result":"updated","_seq_no":90,"_primary_term":1}`
	writtenHere     = `{"_index":"shop","_id":"1","_version":9,"result":"updated","_seq_no":90,"_primary_term":1}`
	writtenEarlier  = `{"_index":"shop","_id":"1","_version":1,"result":"created","_seq_no":0,"_primary_term":1}`
	deletedEarlier  = `{"_index":"shop","_id":"1","_version":1,"result":"deleted","_seq_no":0,"_primary_term":1}`
	conflictAnother = `{"error":{"type":"version_conflict_engine_exception","reason":"[2]: version conflict, required seqNo [1]"},"status":409}`
)

// TestTheAnswerToAnotherWriteIsALostAnswer: something between optimist and the engine mixes up two answers. The client was told 200 for a
// write that was never applied. After a conflict of another document, a write that was applied counted once more.
func TestTheAnswerToAnotherWriteIsALostAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		method, target, body string
		read                 bool
		status               int
		answer               string
		reaches              bool // the engine gets the write
		want, stored         string
	}{
		"applied":                  {"PUT", "/shop/_doc/1", `{"n":3}`, true, 200, writtenAnother, true, "unknown;attempts=1", `{"n":3}`},
		"not applied":              {"PUT", "/shop/_doc/1", `{"n":3}`, true, 200, writtenAnother, false, "guarded;attempts=2", `{"n":3}`},
		"another index":            {"PUT", "/shop/_doc/1", `{"n":3}`, true, 200, writtenInOther, false, "guarded;attempts=2", `{"n":3}`},
		"earlier, applied":         {"PUT", "/shop/_doc/1", `{"n":3}`, true, 201, writtenEarlier, true, "unknown;attempts=1", `{"n":3}`},
		"earlier, not applied":     {"PUT", "/shop/_doc/1", `{"n":3}`, true, 201, writtenEarlier, false, "guarded;attempts=2", `{"n":3}`},
		"an earlier delete":        {"DELETE", "/shop/_doc/1", "", true, 200, deletedEarlier, false, "guarded;attempts=2", ``},
		"an earlier part":          {"POST", update1, `{"doc":{"n":3}}`, true, 200, writtenEarlier, false, "guarded;attempts=2", `{"n":3}`},
		"earlier, its own guard":   {"PUT", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"n":3}`, false, 201, writtenEarlier, false, "unknown;", `{"n":1}`},
		"earlier, a script":        {"POST", update1 + "?if_seq_no=0&if_primary_term=1", `{"script":"x"}`, false, 200, writtenEarlier, false, "unknown;", `{"n":1}`},
		"a part":                   {"POST", update1, `{"doc":{"n":3}}`, true, 200, writtenAnother, true, "unknown;attempts=1", `{"n":3}`},
		"a conflict, applied":      {"PUT", "/shop/_doc/1", `{"n":3}`, true, 409, conflictAnother, true, "unknown;attempts=1", `{"n":3}`},
		"a conflict, not applied":  {"PUT", "/shop/_doc/1", `{"n":3}`, true, 409, conflictAnother, false, "guarded;attempts=2", `{"n":3}`},
		"a delete, not applied":    {"DELETE", "/shop/_doc/1", "", true, 200, writtenAnother, false, "guarded;attempts=2", ``},
		"unguarded, not applied":   {"PUT", "/shop/_doc/1", `{"n":3}`, false, 200, writtenAnother, false, "unknown;attempts=1", `{"n":1}`},
		"unguarded, in a pipeline": {"PUT", "/shop/_doc/1?pipeline=p", `{"n":3}`, false, 200, writtenAnother, false, "passed;", `{"n":1}`},
		"a script, not applied":    {"POST", update1, `{"script":"x"}`, false, 200, writtenAnother, false, "unknown;attempts=1", `{"n":1}`},
		"a script, a conflict":     {"POST", update1, `{"script":"x"}`, false, 409, conflictAnother, false, "unknown;attempts=1", `{"n":1}`},
		"a guard, a conflict":      {"PUT", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"n":3}`, false, 409, conflictAnother, false, "unknown;", `{"n":1}`},
		"without an id":            {"POST", "/shop/_doc", `{"n":3}`, false, 201, writtenAnother, true, "passed;", `{"n":1}`},
	} {
		for _, parks := range []bool{false, true} {
			w := newWorld(t, sumRule)
			w.put("1", `{"n":1}`)
			me := w.client("me")
			if c.read {
				me.read("1")
			}
			w.parks = parks
			tries := 0
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if !isWrite(r) {
					return nil, nil
				}
				if tries++; tries > 1 {
					return nil, nil
				}
				if c.reaches {
					w.engine.handle(r)
				}
				return answering(c.status, c.answer), nil
			}
			r := me.send(c.method, c.target, c.body)
			if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != strings.HasPrefix(c.want, "unknown") || !strings.HasPrefix(r.outcome, c.want) {
				t.Errorf("%s: %v, want %s", name, r, c.want)
			}
			if got := w.stored("1"); got != c.stored {
				t.Errorf("%s: stored %s, want %s", name, got, c.stored)
			}
		}
	}
}

// TestAChangeIsNotMergedIntoAnotherDocument: the answer to the read after a conflict is about another document. Its numbers may be those of
// the client's document, if that is in another shard.
func TestAChangeIsNotMergedIntoAnotherDocument(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"n":5}`)
	reads := 0
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "GET" || !strings.HasPrefix(string(r.Target), "/shop/_doc/1") {
			return nil, nil
		}
		if reads++; reads > 1 {
			return nil, nil
		}
		return answering(200, `{"_index":"shop","_id":"2","_version":2,"_seq_no":1,"_primary_term":1,"found":true,"_source":{"n":100,"x":1}}`), nil
	}
	has(t, me.save("1", `{"n":2}`), 200, "merged")
	same(t, w.stored("1"), `{"n":6}`)
}

// TestAnIndexThatIsNotMadeMayHaveAPipeline: its template has one, which takes all documents elsewhere, under other ids.
func TestAnIndexThatIsNotMadeMayHaveAPipeline(t *testing.T) {
	w := newWorld(t, "")
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if !isWrite(r) {
			return nil, nil
		}
		return answering(200, writtenAnother), nil
	}
	has(t, w.client("me").send("PUT", "/entry/_doc/1", `{"n":2}`), 200, "passed;attempts=1")
}

// TestOnlyAnIndexsOwnNameSaysWhichIndexAnAnswerIsOf: an alias may have stood for another index for a moment, when the engine took the write. A
// gateway may put its tenant into the names of indices, and take it out of some answers only.
func TestOnlyAnIndexsOwnNameSaysWhichIndexAnAnswerIsOf(t *testing.T) {
	for _, c := range []struct{ described, answer, want string }{
		{`{"shop-1":{"settings":{"index":{"uuid":"u"}},"aliases":{"shop":{}}}}`, writtenInOther, "passed;attempts=1;base=if_match;reason=pipeline"},
		{`{"shop-1":{"settings":{"index":{"uuid":"u"}},"aliases":{"shop":{}}}}`, writtenAnother, "unknown;"},
		{`{"tenant-shop":{"settings":{"index":{"uuid":"u"}}}}`, writtenHere, "passed;attempts=1;base=if_match;reason=pipeline"},
		{`{"shop":{"settings":{"index":{"uuid":"u"}}}}`, writtenInOther, "unknown;"},
	} {
		w := newWorld(t, "")
		w.put("1", `{"n":1}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			switch target, _, _ := strings.Cut(string(r.Target), "?"); {
			case target == "/shop":
				return answering(200, c.described), nil
			case isWrite(r):
				return answering(200, c.answer), nil
			}
			return nil, nil
		}
		r := w.client("me").send("PUT", "/shop/_doc/1", `{"n":2}`, ifMatch(`"0-1"`))
		if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != strings.HasPrefix(c.want, "unknown") || !strings.HasPrefix(r.outcome, c.want) {
			t.Errorf("%s, answered %s: %v, want %s", c.described, c.answer, r, c.want)
		}
	}
}

// TestAGatewaysAnswerAboutAnIndexIsNotTheEngines: a gateway answers GET /INDEX by itself. Its JSON was taken for an index called "message", in
// which nobody had read the document: the write went unguarded. Or it was taken for a missing index.
func TestAGatewaysAnswerAboutAnIndexIsNotTheEngines(t *testing.T) {
	for _, page := range []string{`{"message":"hello"}`, `{"status":"ok","data":{}}`, `{}`, `{"shop":{}}`, `{"shop":{"settings":{"index":{}}}}`} {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		w.put("1", `{"n":5}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if target, _, _ := strings.Cut(string(r.Target), "?"); target != "/shop" {
				return nil, nil
			}
			return answering(200, page), nil
		}
		has(t, me.save("1", `{"n":2}`), 409, "guarded;attempts=1;base=session;reason=metadata")
		same(t, w.stored("1"), `{"n":5}`)
	}
}
