package write

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"optimist/internal/base"
	"optimist/internal/etag"
	"optimist/internal/intake"
	"optimist/internal/wire"
)

func noneMatch(v string) wire.Field {
	return wire.Field{Name: []byte("If-None-Match"), Value: []byte(v)}
}

func TestIfMatchOfAnyDocumentIsAGuardByTheCurrentOne(t *testing.T) {
	w := newWorld(t, "")
	me := w.client("me")
	if r := me.send("PUT", "/shop/_doc/1", `{"a":1}`, ifMatch("*")); !errors.Is(r.err, base.ErrNoMatch) {
		t.Errorf("no index: %v", r)
	}
	w.put("0", `{}`)
	if r := me.send("PUT", "/shop/_doc/1", `{"a":1}`, ifMatch("*")); !errors.Is(r.err, base.ErrNoMatch) || w.stored("1") != "" {
		t.Errorf("no document: %v", r)
	}
	w.put("1", `{"a":1,"b":1}`)
	has(t, me.send("PUT", "/shop/_doc/1", `{"a":2,"b":1}`, ifMatch("*")), 200, "guarded;attempts=1;base=if_match")
	has(t, me.save("1", `{"a":3,"b":1}`), 200, "guarded;attempts=1;base=view")
	has(t, me.send("POST", "/shop/_update/1", `{"doc":{"a":4}}`, ifMatch("*")), 200, "guarded;attempts=1;base=if_match")
	has(t, me.send("DELETE", "/shop/_doc/1", "", ifMatch("*")), 200, "guarded;attempts=1;base=if_match")
	if r := me.send("DELETE", "/shop/_doc/1", "", ifMatch("*")); !errors.Is(r.err, base.ErrNoMatch) {
		t.Errorf("no document: %v", r)
	}
	if r := me.send("POST", "/shop/_update/1", `{"doc":{"a":4}}`, ifMatch("*")); !errors.Is(r.err, base.ErrNoMatch) {
		t.Errorf("no document: %v", r)
	}
}

// The strangers' reads stay theirs.
func TestIfMatchOfAnyDocumentTakesNobodysRead(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"b":1}`)
	me, other := w.stranger(), w.stranger()
	other.read("1")
	has(t, me.send("PUT", "/shop/_doc/1", `{"a":2,"b":1}`, ifMatch("*")), 200, "guarded")
	has(t, other.save("1", `{"a":1,"b":2}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"a":2,"b":2}`)
}

func TestIfMatchWithAListTakesWhatIsCurrentOrKnown(t *testing.T) {
	for name, c := range map[string]struct {
		match  string
		status int
		want   string
	}{
		"the current one":          {`"5-9", W/"2-1"`, 200, `{"a":9,"b":1}`},
		"the one that was read":    {`"0-1","1-1"`, 200, `{"a":9,"b":3}`},
		"none that is known":       {`"7-1","8-1"`, 409, `{"a":1,"b":3}`},
		"with empty members":       {` , "2-1" ,, `, 200, `{"a":9,"b":1}`},
		"a copy's, and is current": {`"0-1-0123456789", "2-1"`, 200, `{"a":9,"b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"a":1,"b":1}`)
			me := w.client("me")
			me.read("1")
			w.put("1", `{"a":1,"b":2}`)
			w.put("1", `{"a":1,"b":3}`)
			r := me.send("PUT", "/shop/_doc/1", `{"a":9,"b":1}`, ifMatch(c.match))
			if r.status != c.status {
				t.Errorf("%v", r)
			}
			same(t, w.stored("1"), c.want)
		})
	}
}

func TestIfMatchInSeveralFieldsIsOneList(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	has(t, w.client("me").send("PUT", "/shop/_doc/1", `{"a":2}`, ifMatch(`"7-1"`), ifMatch(`"0-1"`)), 200, "guarded;attempts=1;base=if_match")
}

func TestWhatIsNoIfMatchIsRefused(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	for _, v := range []string{``, `,`, `abc`, `"abc"`, `"0-1", abc`, `*, "0-1"`, `"0-1" "0-1"`, `"0-1-short"`} {
		for _, method := range []string{"PUT /shop/_doc/1", "DELETE /shop/_doc/1", "POST /shop/_update/1"} {
			m, target, _ := strings.Cut(method, " ")
			if r := w.client("me").send(m, target, `{"doc":{}}`, ifMatch(v)); !errors.Is(r.err, etag.ErrBad) {
				t.Errorf("%s %q: %v", method, v, r)
			}
		}
	}
	if r := w.client("me").send("PUT", "/shop/_doc/1", `{}`, ifMatch(`"0-1"`), noneMatch("*")); !errors.Is(r.err, intake.ErrContradiction) {
		t.Errorf("what must be there and not: %v", r)
	}
	same(t, w.stored("1"), `{"a":1}`)
}

func TestIfNoneMatchOfAnyDocumentIsACreate(t *testing.T) {
	for _, rules := range []string{"", "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: default, path: /b, value: {from: current, path: /b}}, {op: default, path: /c, value: 1}]}\n"} {
		w := newWorld(t, rules)
		me := w.client("me")
		for _, target := range []string{"/shop/_doc/1", "/shop/_doc/2?op_type=index&refresh=true"} {
			if r := me.send("PUT", target, `{"a":1}`, noneMatch("*")); r.status != 201 {
				t.Errorf("%v", r)
			}
			if r := me.send("PUT", target, `{"a":2}`, noneMatch(" * ")); r.status != 409 || !strings.Contains(r.body, "document already exists") {
				t.Errorf("the engine's own conflict: %v", r)
			}
		}
		want := `{"a":1}`
		if rules != "" {
			want = `{"a":1,"c":1}`
		}
		same(t, w.stored("1"), want)
		if r := me.send("PUT", "/shop/_doc/1", `{"a":3}`, noneMatch(`"0-1"`)); r.status != 200 {
			t.Errorf("other values are nobody's matter: %v", r)
		}
		if r := me.send("PUT", "/shop/_doc/3?if_seq_no=0&if_primary_term=1", `{"a":3}`, noneMatch("*")); r.status != 400 {
			t.Errorf("a guard of what is not to be there: %v", r)
		}
	}
}

// The tag of a merged answer is the writer's own, also where others write on, and where nobody has read the base.
func TestTheTagOfAMergedAnswerStandsForWhatWasSent(t *testing.T) {
	for name, who := range map[string]func(*world) *client{"inferred": (*world).stranger, "anonymous": (*world).nobody} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sumRule)
			w.put("1", `{"n":10,"x":0}`)
			writers := make([]*client, 3)
			tags := make([]string, 3)
			for i := range writers {
				writers[i] = who(w)
				writers[i].read("1")
				tags[i] = `"0-1"`
			}
			w.put("1", `{"n":20,"x":1}`)
			refused := 0
			for round := range 4 {
				for i, c := range writers {
					r := c.send("PUT", "/shop/_doc/1", fmt.Sprintf(`{"n":%d,"x":0}`, 11+round), ifMatch(tags[i]))
					switch {
					case r.status == 200 && r.etag == "", r.status != 200 && r.status != 409:
						t.Fatalf("%d of %d: %v", round, i, r)
					case r.status == 409:
						refused++
						tags[i] = `"9-9"` // it would read again
						continue
					}
					tags[i] = r.etag
				}
			}
			if name == "inferred" && refused > 0 {
				t.Errorf("%d of 12 refused", refused)
			}
			same(t, w.stored("1"), fmt.Sprintf(`{"n":%d,"x":1}`, 20+12-refused))
		})
	}
}

func TestAWriteThatIsRepeatedWithItsIfMatchCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		rules, query string
		fields       []wire.Field
	}{
		"If-Match":   {sumRule, "", []wire.Field{ifMatch(`"0-1"`)}},
		"if_seq_no":  {sumRule + "  base: {explicit: merge}\n", "?if_seq_no=0&if_primary_term=1", nil},
		"no numbers": {sumRule, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"n":1,"log":[]}`)
			me, other := w.client("me"), w.client("other")
			me.read("1")
			other.read("1")
			const sent = `{"n":2,"log":["a"]}`
			for range 2 {
				if r := me.send("PUT", "/shop/_doc/1"+c.query, sent, c.fields...); r.status != 200 {
					t.Fatal(r)
				}
				same(t, w.stored("1"), sent)
			}
			// The other one has written nothing from it, and merges.
			has(t, other.send("PUT", "/shop/_doc/1"+c.query, `{"n":2,"log":["b"]}`, c.fields...), 200, "merged")
			same(t, w.stored("1"), `{"n":3,"log":["a","b"]}`)
			if c.fields == nil && c.query == "" {
				return
			}
			// A change more, made in memory, with the numbers of before: of what is in it already nobody knows how much.
			has(t, me.send("PUT", "/shop/_doc/1"+c.query, `{"n":3,"log":["a","c"]}`, c.fields...), 409, "guarded")
			same(t, w.stored("1"), `{"n":3,"log":["a","b"]}`)
		})
	}
}
