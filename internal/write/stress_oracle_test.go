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
	t := x.t
	everywhere := map[string][]string{} // token → where it came up: life/document@revision, after how many deletes of it
	revisions, wrong := 0, 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= 5 {
			t.Errorf(format, args...)
		}
	}
	for l, life := range x.history.lives {
		for id, all := range life {
			slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(a.seq, b.seq) })
			before, deletes := map[string]bool{}, 0
			for _, s := range all {
				revisions++
				if s.body == "" {
					deletes++
					before = map[string]bool{}
					continue
				}
				now, amount := tokens(s.body)
				if edits := gjson.Get(s.body, "edits").Int(); x.edits && edits != proxied(now) {
					fail("life %d, document %s, revision %d: it was transformed %d times, of %d changes; new is %s", l, id, s.seq, edits, proxied(now),
						x.fresh(now, before))
				}
				if n := gjson.Get(s.body, "n").Int(); n != amount {
					fail("life %d, document %s, revision %d: the counter is %d, its changes come to %d", l, id, s.seq, n, amount)
				}
				for token, times := range now {
					if times != 1 {
						fail("life %d, document %s, revision %d: %s is there %d times: %q", l, id, s.seq, token, times, x.said[token])
					}
					if !before[token] && (deletes == 0 || len(x.said[token]) < 2 || len(everywhere[token]) == 0) {
						// Who sends a change again that had no known outcome may make a document again that was deleted since.
						everywhere[token] = append(everywhere[token], fmt.Sprintf("%d/%s@%d after %d", l, id, s.seq, deletes))
					}
				}
				for token := range before {
					if now[token] == 0 {
						fail("life %d, document %s, revision %d: %s was there and is lost: %q; new is %s", l, id, s.seq, token, x.said[token], x.fresh(now, before))
					}
				}
				before = map[string]bool{}
				for token := range now {
					before[token] = true
				}
			}
		}
	}
	var told [3]int
	for token, f := range x.fates {
		told[f]++
		switch at := everywhere[token]; {
		case f == acknowledged && len(at) != 1:
			fail("%s was acknowledged, and was stored at %q: %q", token, at, x.said[token])
		case f == refused && len(at) != 0:
			fail("%s was refused, and stored at %q: %q", token, at, x.said[token])
		case len(at) > 1:
			fail("%s was stored at %q: %q", token, at, x.said[token])
		}
	}
	t.Logf("%d lives, %d revisions; %d changes acknowledged, %d refused, %d unknown", len(x.history.lives), revisions, told[acknowledged], told[refused], told[unknown])
	if told[acknowledged] < told[refused]+told[unknown] {
		t.Errorf("too little was acknowledged for the test to mean much")
	}
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
func (x *stress) fresh(now map[string]int, before map[string]bool) string {
	var b strings.Builder
	for token := range now {
		if !before[token] && b.Len() < 500 {
			fmt.Fprintf(&b, "%s %q ", token, x.said[token])
		}
	}
	return b.String()
}

// tokens are those of a document's changes, and what the counter must come to. A token that is in the list and not a field, or the
// other way round, counts as none.
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
