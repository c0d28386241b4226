package embedded

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

const workers = 8

// together runs f once for each worker at the same time.
func together(f func(worker int)) {
	var start, done sync.WaitGroup
	start.Add(1)
	for w := range workers {
		done.Go(func() {
			start.Wait()
			f(w)
		})
	}
	start.Done()
	done.Wait()
}

func TestGuardedCountersLoseNothing(t *testing.T) {
	e := New(Options{})
	ask(t, e, "PUT", "/c/_doc/1", `{"n":0}`)
	const steps = 50
	together(func(int) {
		for done := 0; done < steps; {
			_, body := ask(t, e, "GET", "/c/_doc/1", "")
			target := fmt.Sprintf("/c/_doc/1?if_seq_no=%d&if_primary_term=1", gjson.Get(body, "_seq_no").Int())
			status, _ := ask(t, e, "PUT", target, fmt.Sprintf(`{"n":%d}`, gjson.Get(body, "_source.n").Int()+1))
			if status == 200 {
				done++
			} else if status != 409 {
				t.Error(status)
				return
			}
		}
	})
	if _, body := ask(t, e, "GET", "/c/_doc/1", ""); gjson.Get(body, "_source.n").Int() != workers*steps || gjson.Get(body, "_version").Int() != workers*steps+1 {
		t.Error(body)
	}
}

// The demonstration shows losses on this engine: one that serialised its clients' rounds would show none.
func TestUnguardedWritersOverwriteEachOther(t *testing.T) {
	e := New(Options{})
	ask(t, e, "PUT", "/c/_doc/1", `{}`)
	ask(t, e, "GET", "/c/_doc/1", "") // both read before either writes
	ask(t, e, "PUT", "/c/_doc/1", `{"a":1}`)
	ask(t, e, "PUT", "/c/_doc/1", `{"b":1}`)
	if _, body := ask(t, e, "GET", "/c/_source/1", ""); body != `{"b":1}` {
		t.Error(body)
	}
}

func TestRetriedUpdatesAllEndUpInTheDocument(t *testing.T) {
	e := New(Options{})
	ask(t, e, "PUT", "/c/_doc/1", `{}`)
	together(func(w int) {
		for i := range 20 {
			body := fmt.Sprintf(`{"doc":{"w%d":{"n%d":1}}}`, w, i)
			if status, answer := ask(t, e, "POST", "/c/_update/1?retry_on_conflict=100000", body); status != 200 {
				t.Error(status, answer)
			}
		}
	})
	_, body := ask(t, e, "GET", "/c/_source/1", "")
	for w := range workers {
		if n := len(gjson.Get(body, fmt.Sprintf("w%d", w)).Map()); n != 20 {
			t.Errorf("worker %d: %d of 20 updates", w, n)
		}
	}
}

func TestOneOfManyCreatesWins(t *testing.T) {
	e := New(Options{})
	var mu sync.Mutex
	created := 0
	together(func(int) {
		if status, _ := ask(t, e, "PUT", "/c/_create/1", `{}`); status == 201 {
			mu.Lock()
			created++
			mu.Unlock()
		}
	})
	if created != 1 {
		t.Error(created, "creates succeeded")
	}
}

func TestIndicesComeAndGoUnderWriters(t *testing.T) {
	e := New(Options{})
	together(func(w int) {
		for i := range 50 {
			if w == 0 {
				ask(t, e, "DELETE", "/c?ignore_unavailable=true", "")
				continue
			}
			if status, body := ask(t, e, "PUT", fmt.Sprintf("/c/_doc/%d", i), fmt.Sprintf(`{"f%d":1}`, w)); status > 201 {
				t.Error(status, body)
			}
			ask(t, e, "POST", "/c/_search", `{"query":{"exists":{"field":"f1"}}}`)
			ask(t, e, "GET", "/c", "")
		}
	})
}

// TestSettingsMayChangeUnderWriters has something to find with -race: writes and searches read the settings.
func TestSettingsMayChangeUnderWriters(t *testing.T) {
	e := New(Options{})
	ask(t, e, "PUT", "/c", "")
	together(func(worker int) {
		for n := range 50 {
			switch worker % 3 {
			case 0:
				ask(t, e, "PUT", "/c/_settings", `{"number_of_replicas":`+strconv.Itoa(n%3)+`,"max_result_window":`+strconv.Itoa(100+n)+`}`)
			case 1:
				ask(t, e, "PUT", "/c/_doc/1", `{"n":1}`)
			default:
				ask(t, e, "GET", "/c/_search", "")
			}
		}
	})
}

func TestRefusedSettingsChangeNothing(t *testing.T) {
	e := New(Options{})
	ask(t, e, "PUT", "/c", `{"settings":{"number_of_replicas":0}}`)
	if status, body := ask(t, e, "PUT", "/c/_settings", `{"blocks.write":true}`); status != 400 {
		t.Fatal(status, body)
	}
	if _, body := ask(t, e, "GET", "/_cluster/health", ""); gjson.Get(body, "status").String() != "green" {
		t.Error(body)
	}
}

func TestADeletedVersionIsForgottenAfterAMinute(t *testing.T) {
	now := time.Unix(0, 0)
	e := New(Options{Now: func() time.Time { return now }})
	version := func() int64 {
		_, body := ask(t, e, "PUT", "/c/_doc/1", `{}`)
		return gjson.Get(body, "_version").Int()
	}
	version()
	ask(t, e, "DELETE", "/c/_doc/1", "")
	now = now.Add(graveTime - 1)
	if v := version(); v != 3 {
		t.Error("within the minute:", v)
	}
	ask(t, e, "DELETE", "/c/_doc/1", "")
	now = now.Add(graveTime)
	if v := version(); v != 1 {
		t.Error("after the minute:", v)
	}
}

func TestABulkRequestMayBeReusedByItsCaller(t *testing.T) {
	e := New(Options{})
	body := []byte("{\"index\":{\"_index\":\"c\",\"_id\":\"1\"}}\n{\"a\":\"kept\"}\n")
	e.Handle(&Request{Method: "POST", Target: "/_bulk", ContentType: "application/x-ndjson", Body: body})
	for i := range body {
		body[i] = 'x'
	}
	if _, got := ask(t, e, "GET", "/c/_source/1", ""); got != `{"a":"kept"}` {
		t.Error(got)
	}
}

func TestAnIndexMadeAnewHasAnotherUUID(t *testing.T) {
	e := New(Options{})
	uuid := func() string {
		ask(t, e, "PUT", "/c", "")
		_, body := ask(t, e, "GET", "/c/_settings", "")
		return gjson.Get(body, "c.settings.index.uuid").String()
	}
	first := uuid()
	ask(t, e, "DELETE", "/c", "")
	if second := uuid(); first == second || len(second) != 22 {
		t.Error(first, second)
	}
}

func TestTheEngineSaysThatItIsInMemory(t *testing.T) {
	_, body := ask(t, New(Options{}), "GET", "/", "")
	if gjson.Get(body, "version.distribution").String() != "optimist-embedded" || !strings.Contains(gjson.Get(body, "tagline").String(), "all data is lost") {
		t.Error(body)
	}
}
