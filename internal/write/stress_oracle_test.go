package write

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// history is every revision that the engine has stored, life of the index by life.
type history struct {
	mu    sync.Mutex
	lives []map[string][]stored
}

type stored struct {
	seq  int64
	body string // "" for a delete
}

func (h *history) add(id string, seq int64, method, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method == "DELETE" {
		body = ""
	}
	life := h.lives[len(h.lives)-1]
	life[id] = append(life[id], stored{seq, body})
}

func (h *history) life() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lives)
}

func (h *history) nextLife() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives = append(h.lives, map[string][]stored{})
}

// judge compares what was stored with what clients were told.
func (x *stress) judge() {
	v := verdict{x: x, everywhere: map[string][]string{}}
	for l, life := range x.history.lives {
		for id, all := range life {
			slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(a.seq, b.seq) })
			v.document(fmt.Sprintf("%d/%s", l, id), all)
		}
	}
	told := v.fates()
	x.t.Logf("%d lives, %d revisions; %d changes acknowledged, %d refused, %d unknown", len(x.history.lives), v.revisions, told[acknowledged],
		told[refused], told[unknown])
	if told[acknowledged] < told[refused]+told[unknown] {
		x.t.Errorf("too little was acknowledged for the test to mean much")
	}
}

// verdict is what a stress comes to.
type verdict struct {
	x          *stress
	everywhere map[string][]string // token → where it came up: life/document@revision, after how many deletes of it
	revisions  int
	wrong      int
}

// fail tells of the first few things that are wrong.
func (v *verdict) fail(format string, args ...any) {
	v.x.t.Helper()
	if v.wrong++; v.wrong <= 5 {
		v.x.t.Errorf(format, args...)
	}
}

// document looks at all revisions of a document in one life of the index, oldest first.
func (v *verdict) document(name string, all []stored) {
	said := v.x.said
	before, deletes := map[string]int{}, 0
	for _, s := range all {
		v.revisions++
		if s.body == "" {
			deletes++
			before = map[string]int{}
			continue
		}
		at := fmt.Sprintf("%s@%d", name, s.seq)
		now := v.revision(at, s.body, before)
		for token := range now {
			if before[token] == 0 && (deletes == 0 || !sentAgain(said[token]) || len(v.everywhere[token]) == 0) {
				// A client that sends a change again which had no known outcome may change a document that was deleted and made
				// anew since. So may a proxy, of a change that may be applied twice.
				v.everywhere[token] = append(v.everywhere[token], fmt.Sprintf("%s after %d", at, deletes))
			}
		}
		before = now
	}
}

// sentAgain reports whether a client or its proxy has sent a change more than once.
func sentAgain(said []string) bool {
	return len(said) > 1 || len(said) == 1 && !strings.Contains(said[0], "attempts=1;") && !strings.Contains(said[0], "attempts=0;")
}

// revision looks at one revision and returns its changes. before are those of the one before it.
func (v *verdict) revision(at, body string, before map[string]int) (now map[string]int) {
	x := v.x
	now, amount := tokens(body)
	if edits := gjson.Get(body, "edits").Int(); x.edits && edits != proxied(now) {
		v.fail("%s: it was transformed %d times, of %d changes; new is %s", at, edits, proxied(now), x.fresh(now, before))
	}
	if n := gjson.Get(body, "n").Int(); n != amount {
		v.fail("%s: the counter is %d, its changes come to %d", at, n, amount)
	}
	for token, times := range now {
		if times != 1 {
			v.fail("%s: %s is there %d times: %q", at, token, times, x.said[token])
		}
	}
	for token := range before {
		if now[token] == 0 {
			v.fail("%s: %s was there and is lost: %q; new is %s", at, token, x.said[token], x.fresh(now, before))
		}
	}
	return now
}

// fates compares where changes came up with what was said of them, and counts what was.
func (v *verdict) fates() (told [3]int) {
	for token, f := range v.x.fates {
		told[f]++
		said := v.x.said[token]
		switch at := v.everywhere[token]; {
		case f == acknowledged && len(at) != 1:
			v.fail("%s was acknowledged, and was stored at %q: %q", token, at, said)
		case f == refused && len(at) != 0:
			v.fail("%s was refused, and stored at %q: %q", token, at, said)
		case len(at) > 1:
			v.fail("%s was stored at %q: %q", token, at, said)
		}
	}
	return told
}

// proxied counts the changes that went through a proxy.
func proxied(tokens map[string]int) (n int64) {
	for token := range tokens {
		if !strings.HasPrefix(token, "w0-") && !strings.HasPrefix(token, "w1-") {
			n++
		}
	}
	return n
}

// fresh tells of the changes of a revision that the one before it hadn't.
func (x *stress) fresh(now, before map[string]int) string {
	var b strings.Builder
	for token := range now {
		if before[token] == 0 && b.Len() < 500 {
			fmt.Fprintf(&b, "%s %q ", token, x.said[token])
		}
	}
	return b.String()
}

// tokens are those of a document's changes, and what the counter must come to. A token that is in the list and not a field, or
// the other way round, counts as none.
func tokens(body string) (times map[string]int, amount int64) {
	times = map[string]int{}
	fields := map[string]int64{}
	gjson.Parse(body).ForEach(func(k, v gjson.Result) bool {
		if token, ok := strings.CutPrefix(k.Str, "g-"); ok {
			times[token]++
		}
		if token, ok := strings.CutPrefix(k.Str, "f-"); ok {
			fields[token] += v.Int()
		}
		return true
	})
	for _, entry := range gjson.Get(body, "log").Array() {
		token, step, _ := strings.Cut(entry.Str, "=")
		n := gjson.Parse(step).Int()
		amount += n
		if fields[token] == n {
			times[token]++
		}
	}
	return times, amount
}
