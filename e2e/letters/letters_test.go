// Package letters_test has dead letters kept by the real program, on real engines and on a real Kafka, and kills it meanwhile.
package letters_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// rules have every stale write become a letter.
const rules = `rules:
- name: stale
  match: {index: ["t-*"]}
  on_conflict: fail
  on_exhausted: dead_letter
`

func TestNoLetterIsLostThoughTheProcessIsKilled(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		letters := e.Index(t)
		t.Cleanup(func() { _, _ = e.Do(context.Background(), http.MethodDelete, "/"+letters+"-1", "") })
		survive(t, e, index, fmt.Sprintf("dead_letters: {index: %s, folder: %s}\n", letters, t.TempDir()))
	})
	t.Run("kafka", func(t *testing.T) {
		k, err := engine.StartKafka(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Stop() })
		e := engine.Shared(t, engine.OpenSearch38)
		survive(t, e, e.Index(t), fmt.Sprintf("dead_letters: {sink: kafka, timeout: 20s, kafka: {brokers: [%q]}}\n", k.Addr))
	})
	t.Run("file", func(t *testing.T) {
		e := engine.Shared(t, engine.OpenSearch38)
		survive(t, e, e.Index(t), fmt.Sprintf("dead_letters: {sink: file, folder: %s}\n", t.TempDir()))
	})
}

// kept are the letters whose clients got their 202, with the bodies that they sent.
type kept struct {
	mu   sync.Mutex
	body map[string]string
	more chan struct{} // gets something with each
}

// survive has clients leave letters while the program is killed again and again. Then it looks for all of them, and replays one.
func survive(t *testing.T, e *engine.Engine, index, config string) {
	t.Helper()
	p, err := optimist.Run(t.Context(), t.TempDir(), optimist.Options{Upstream: []string{e.URL}, Config: rules + config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	all := &kept{body: map[string]string{}, more: make(chan struct{}, 1024)}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() { all.leave(ctx, e, p.URL, fmt.Sprintf("/%s/_doc/%d", index, n)) })
	}
	const kills, between = 3, 10
	for range kills {
		for range between {
			select {
			case <-all.more:
			case <-t.Context().Done():
				t.Fatal("the letters don't come")
			}
		}
		p.Kill()
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
	if len(all.body) < kills*between {
		t.Fatalf("%d letters", len(all.body))
	}
	some := ""
	listed := list(t, p)
	for id := range all.body {
		if !listed[id] {
			t.Errorf("the letter %s is lost", id)
		}
	}
	looked := 0
	for id, body := range all.body {
		if looked++; looked > 10 {
			break
		}
		status, letter := ask(t, http.MethodGet, p.Admin+"/_optimist/dead-letters/"+id, "")
		if status != 200 || letter.Get("request.body").Str != body || letter.Get("state").Str != "waiting" {
			t.Errorf("the letter %s with %s: %d %s", id, body, status, letter)
		}
		some = id
	}
	replay(t, p, some)
}

// list are the ids of all letters.
func list(t *testing.T, p *optimist.Process) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for after := ""; ; {
		status, page := ask(t, http.MethodGet, p.Admin+"/_optimist/dead-letters?size=500&after="+after, "")
		if status != 200 {
			t.Fatalf("%d %s", status, page)
		}
		for _, l := range page.Get("letters").Array() {
			ids[l.Get("id").Str] = true
		}
		if after = page.Get("next").Str; after == "" {
			return ids
		}
	}
}

// replay has a letter replayed that is as stale as before, and deletes it.
func replay(t *testing.T, p *optimist.Process, id string) {
	t.Helper()
	path := p.Admin + "/_optimist/dead-letters/" + id
	if _, r := ask(t, http.MethodPost, path+"/_replay", "{}"); r.Get("result").Str != "refused" || r.Get("status").Int() != 409 {
		t.Errorf("a stale write, replayed: %s", r)
	}
	if status, r := ask(t, http.MethodDelete, path, ""); status != 200 {
		t.Errorf("delete: %d %s", status, r)
	}
	if status, _ := ask(t, http.MethodGet, path, ""); status != 404 {
		t.Errorf("it is there after it was deleted: %d", status)
	}
}

// leave makes stale writes until ctx ends: it reads through optimist, changes the document past it, and writes back what it has read.
func (k *kept) leave(ctx context.Context, e *engine.Engine, base, target string) {
	for n := 0; ctx.Err() == nil; n++ {
		session := fmt.Sprintf("%s-%d", target[len(target)-1:], n)
		if a, err := e.Do(ctx, http.MethodPut, target, fmt.Sprintf(`{"n":%d,"by":"start"}`, n)); err != nil || a.Status > 201 {
			continue
		}
		if status, _, _ := try(ctx, http.MethodGet, base+target, "", session); status != 200 {
			continue // it was killed
		}
		if a, err := e.Do(ctx, http.MethodPut, target, fmt.Sprintf(`{"n":%d,"by":"other"}`, n)); err != nil || a.Status > 201 {
			continue
		}
		body := fmt.Sprintf(`{"n":%d,"by":"%s"}`, n, session)
		status, answer, err := try(ctx, http.MethodPut, base+target, body, session)
		if err != nil || status != http.StatusAccepted {
			continue // without an answer nobody has promised anything
		}
		k.mu.Lock()
		k.body[gjson.Get(answer, "dead_letter.id").Str] = body
		k.mu.Unlock()
		select {
		case k.more <- struct{}{}:
		default:
		}
	}
}

func try(ctx context.Context, method, url, body, session string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set("Optimist-Session", session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func ask(t *testing.T, method, url, body string) (int, gjson.Result) {
	t.Helper()
	status, text, err := try(t.Context(), method, url, body, "")
	if err != nil || !json.Valid([]byte(text)) {
		t.Fatalf("%s %s: %d %s %v", method, url, status, text, err)
	}
	return status, gjson.Parse(text)
}
