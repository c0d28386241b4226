package write

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/session"
	"optimist/internal/undeliverable"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// shelf keeps letters in memory, or refuses them.
type shelf struct {
	kept []undeliverable.Letter
	err  error
}

func (s *shelf) Keep(_ context.Context, u *undeliverable.Letter) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	one := *u
	one.Body, one.Method = bytes.Clone(u.Body), bytes.Clone(u.Method)
	one.Base.View, one.Base.Stored = bytes.Clone(u.Base.View), bytes.Clone(u.Base.Stored)
	s.kept = append(s.kept, one)
	return "letter-1", nil
}

const letterRule = `rules:
- name: shop
  match: {index: [shop]}
  merge: {paths: {/status: fail}}
  retry: {max_attempts: 2}
  on_exhausted: dead_letter
`

// letterWorld is one whose rule keeps what can't be placed.
func letterWorld(t *testing.T, rules string) (*world, *shelf) {
	w, s := newWorld(t, rules), &shelf{}
	w.start(Options{Letters: s})
	return w, s
}

// refuseWrites answers every write to the document with a status and an error's type.
func refuseWrites(w *world, status int, kind string) {
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == http.MethodGet || strings.Contains(string(r.Target), "optimist-probe") {
			return nil, nil
		}
		res := &upstream.Response{Payload: []byte(`{"error":{"type":"` + kind + `","reason":"so"},"status":` + http.StatusText(status) + `}`)}
		res.Status = status
		return res, nil
	}
}

func TestAWriteThatCanNotBePlacedIsKeptAndItsClientIsToldSo(t *testing.T) {
	w, shelf := letterWorld(t, letterRule)
	w.put("1", `{"status":"new","n":1}`)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"status":"paid","n":1}`), 200, "guarded")
	got := b.save("1", `{"status":"shipped","n":2}`)
	has(t, got, 202, "dead-letter;attempts=1;base=session;reason=conflict")
	if want := `{"_index":"shop","_id":"1","result":"dead_letter","dead_letter":{"id":"letter-1","reason":"conflict"}}`; got.body != want {
		t.Errorf("the client got %s, want %s", got.body, want)
	}
	same(t, w.stored("1"), `{"status":"paid","n":1}`)
	if len(shelf.kept) != 1 {
		t.Fatalf("%d letters, want 1", len(shelf.kept))
	}
	u := shelf.kept[0]
	if string(u.Body) != `{"status":"shipped","n":2}` || string(u.Base.View) != `{"status":"new","n":1}` || u.Status != 409 ||
		u.Rule != "shop" || u.Index != "shop" || u.ID != "1" || !strings.Contains(u.Detail, "/status") || !u.Base.Numbers.Known() {
		t.Errorf("the letter is %+v", u)
	}
}

func TestALetterThatCanNotBeStoredLeavesTheErrorToTheClient(t *testing.T) {
	w, shelf := letterWorld(t, letterRule)
	shelf.err = errors.New("the disk is full")
	refuseWrites(w, 429, "es_rejected_execution_exception")
	has(t, w.client("a").save("1", `{"n":1}`), 429, "passed;attempts=1")
}

func TestWithoutTheRulesKeyNothingIsKept(t *testing.T) {
	w, shelf := letterWorld(t, strings.Replace(letterRule, "dead_letter", "fail", 1))
	refuseWrites(w, 429, "es_rejected_execution_exception")
	has(t, w.client("a").save("1", `{"n":1}`), 429, "passed")
	if len(shelf.kept) > 0 {
		t.Errorf("kept: %+v", shelf.kept)
	}
}

func TestWhatIsKept(t *testing.T) {
	notSent := &upstream.Error{Node: "http://stub", Class: upstream.NotSent, Err: errors.New("connection refused")}
	for _, one := range []struct {
		name, reason string // no reason: the client gets the error
		status       int
		kind         string
		err          error
	}{
		{"the engine has too much to do", "busy", 429, "es_rejected_execution_exception", nil},
		{"the engine refuses the document", "refused", 400, "mapper_parsing_exception", nil},
		{"the index takes no writes", "refused", 403, "cluster_block_exception", nil},
		{"the index takes no writes, as the disk is full", "refused", 429, "cluster_block_exception", nil},
		{"the engine refuses the request, and may not know its client", "", 400, "illegal_argument_exception", nil},
		{"no node can be reached", "unreachable", 0, "", notSent},
		{"the client may not write", "", 403, "security_exception", nil},
		{"nobody knows the client", "", 401, "security_exception", nil},
		{"a node fails: it may be written", "", 503, "unavailable_shards_exception", nil},
		{"the answer is lost: it may be written", "", 0, "", lostError},
	} {
		t.Run(one.name, func(t *testing.T) {
			w, shelf := letterWorld(t, letterRule)
			w.put("1", `{"n":1}`)
			c := w.client("c")
			c.read("1")
			has(t, c.save("1", `{"n":1}`), 200, "guarded") // the index is known from now on
			if one.err == nil {
				refuseWrites(w, one.status, one.kind)
			} else {
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method == http.MethodPut {
						return nil, one.err
					}
					return nil, nil
				}
			}
			got := c.save("1", `{"n":2}`)
			if one.reason == "" {
				if got.status == 202 || len(shelf.kept) > 0 {
					t.Fatalf("got %s, kept %d", got, len(shelf.kept))
				}
				return
			}
			has(t, got, 202, "dead-letter;")
			if len(shelf.kept) != 1 || shelf.kept[0].Reason != one.reason || string(shelf.kept[0].Base.View) != `{"n":1}` {
				t.Errorf("kept: %+v", shelf.kept)
			}
		})
	}
}

func TestAConflictThatTheClientAsksForIsItsAnswer(t *testing.T) {
	w, shelf := letterWorld(t, letterRule)
	w.put("1", `{"n":1}`)
	c := w.client("c")
	has(t, c.send("PUT", "/shop/_create/1", `{"n":2}`), 409, "")
	has(t, c.send("PUT", "/shop/_doc/1?op_type=create", `{"n":2}`), 409, "")
	has(t, c.send("PUT", "/shop/_doc/1?if_seq_no=7&if_primary_term=1", `{"n":2}`), 409, "")
	has(t, c.send("PUT", "/shop/_doc/1", `{"n":2}`, wire.Field{Name: []byte("If-None-Match"), Value: []byte("*")}), 409, "")
	has(t, c.send("PATCH", "/shop/_doc/1", `[{"op":"test","path":"/n","value":7}]`,
		wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json-patch+json")}), 409, "")
	if len(shelf.kept) > 0 {
		t.Errorf("kept: %+v", shelf.kept)
	}
}

// A replay would be refused, too: the rule itself doesn't take the document.
func TestAWriteThatItsRulesTransformRefusesIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		method, target string
		read           bool
	}{
		"a base":  {"PUT", "/shop/_doc/1", true},
		"no base": {"PUT", "/shop/_doc/1", false},
		"no id":   {"POST", "/shop/_doc", false},
	} {
		for _, step := range []string{"{op: test, path: /status, value: open}", "{op: refuse, message: closed}"} {
			w, shelf := letterWorld(t, letterRule+"  transform: ["+step+"]\n")
			w.put("1", `{"status":"open"}`)
			me := w.client("me")
			if c.read {
				me.read("1")
			}
			has(t, me.send(c.method, c.target, `{"status":"closed"}`), 409, "refused;attempts=0")
			if len(shelf.kept) > 0 {
				t.Errorf("%s, %s: kept %+v", name, step, shelf.kept)
			}
		}
	}
}

func TestTheBaseIsFoundThoughTheEngineIsAway(t *testing.T) {
	w, shelf := letterWorld(t, letterRule)
	w.put("1", `{"n":1}`)
	c := w.client("c")
	c.read("1")
	w.engine.before = func(*upstream.Request) (*upstream.Response, error) {
		return nil, &upstream.Error{Node: "http://stub", Class: upstream.NotSent, Err: errors.New("connection refused")}
	}
	has(t, c.save("1", `{"n":2}`), 202, "dead-letter;attempts=0;base=session;reason=unreachable")
	if len(shelf.kept) != 1 || shelf.kept[0].Index != "shop" || string(shelf.kept[0].Base.View) != `{"n":1}` {
		t.Errorf("kept: %+v", shelf.kept)
	}
}

func TestTheNextWriteAfterALetterIsNotMergedFromTheSameRevision(t *testing.T) {
	w, _ := letterWorld(t, letterRule)
	w.put("1", `{"status":"new","n":1}`)
	a, b := w.client("a"), w.client("b")
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"status":"paid","n":1}`), 200, "guarded")
	has(t, b.save("1", `{"status":"shipped","n":2}`), 202, "dead-letter")
	has(t, b.save("1", `{"status":"new","n":3}`), 202, "dead-letter") // its change has the letter's in it
	same(t, w.stored("1"), `{"status":"paid","n":1}`)
}

func TestAWriteThatIsMadeAgainCountsFromWhatItsClientHadSeen(t *testing.T) {
	w, shelf := letterWorld(t, strings.Replace(letterRule, "/status: fail", "/n: sum", 1))
	w.put("1", `{"n":10,"by":"x"}`)
	status, body := w.direct("GET", "/shop/_doc/1", "")
	rev, ok := revisionIn(body)
	if status != 200 || !ok {
		t.Fatal(body)
	}
	w.put("1", `{"n":7,"by":"y"}`)
	again := func(from base.Preset) result {
		c := w.client("letter")
		c.anonymous = true
		return c.doRequest(t.Context(), &Request{Request: base.Request{Preset: &from}}, "PUT", "/shop/_doc/1", []byte(`{"n":9,"by":"x"}`))
	}
	read := base.Preset{Kind: session.KindRead, Numbers: rev.Numbers, View: rev.Source, Stored: rev.Source}
	has(t, again(read), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"n":6,"by":"y"}`)
	numbers := base.Preset{Kind: session.KindExplicit, Numbers: doc.Numbers{SeqNo: 0, PrimaryTerm: 1}}
	has(t, again(numbers), 409, "guarded;attempts=1")
	if len(shelf.kept) > 0 {
		t.Errorf("a write that is made again was kept again: %+v", shelf.kept)
	}
}

// The letter would have no place for the rest, and its replay would write something else.
func TestWhatOnlyABulkCanSayIsNotKept(t *testing.T) {
	w, shelf := letterWorld(t, letterRule)
	w.put("1", `{"n":1}`)
	refuseWrites(w, 403, "cluster_block_exception")
	has(t, w.client("c").doRequest(t.Context(), &Request{OnlyInBulk: true}, "PUT", "/shop/_doc/1", []byte(`{"n":2}`)), 403, "passed")
	if len(shelf.kept) > 0 {
		t.Errorf("kept: %+v", shelf.kept)
	}
}

func TestADryRunKeepsNothing(t *testing.T) {
	w, shelf := letterWorld(t, letterRule)
	w.put("1", `{"status":"new"}`)
	b := w.client("b")
	b.read("1")
	w.put("1", `{"status":"paid"}`)
	var op api.Op
	api.Parse([]byte("PUT"), []byte("/shop/_doc/1"), &op)
	account, err := w.s.Explain(t.Context(), &Request{Method: []byte("PUT"), Body: []byte(`{"status":"shipped"}`), Request: base.Request{Op: &op, Session: b.sess,
		Rule: w.rules.Match("shop", op.Kind), Fields: []wire.Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}}}})
	if err != nil || account.Outcome.Status != 409 || len(shelf.kept) > 0 {
		t.Errorf("%+v, %v, kept %d", account, err, len(shelf.kept))
	}
}

// A rule that names no index leaves data streams alone: their clients get the engine's errors.
func TestAWriteToADataStreamThatNoRuleNamesIsNotKept(t *testing.T) {
	for match, kept := range map[string]int{"": 0, ", match: {index: [shop]}": 3} {
		w, shelf := letterWorld(t, "rules: [{name: r, on_exhausted: dead_letter"+match+"}]\n")
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "GET" {
				return answering(200, `{"shop":{"settings":{"index":{"uuid":"u"}},"data_stream":"s"}}`), nil
			}
			return answering(400, `{"error":{"type":"mapper_parsing_exception"},"status":400}`), nil
		}
		status := 400
		if kept > 0 {
			status = 202
		}
		has(t, w.client("c").send("PUT", "/shop/_create/1", `{"a":1}`), status, "")
		has(t, w.client("c").send("POST", "/shop/_doc", `{"a":1}`), status, "")
		has(t, w.nobody().send("PUT", "/shop/_create/1", `{"a":1}`), status, "")
		if len(shelf.kept) != kept {
			t.Errorf("%q: kept %+v", match, shelf.kept)
		}
	}
}
