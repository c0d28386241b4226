package locks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/e2e/engine"
)

// TestKestra is a lock repository: a lock is (category, id), doInLock waits for it, works, and releases in any case.
func TestKestra(t *testing.T) {
	eachEngine(t, 2, "", func(t *testing.T, _ *engine.Engine, c []client) {
		const path = "/_lock/global/executions.4711"
		var mu sync.Mutex // held only while the lock is: two who hold it meet here
		var done atomic.Int32
		doInLock := func(c client, owner, timeout string, work func()) bool {
			r, err := c.try(context.Background(), "PUT", path, fmt.Sprintf(`{"owner":%q,"wait":%q}`, owner, timeout))
			if err != nil {
				t.Error(err)
				return false
			}
			if r.status == http.StatusConflict {
				return false
			}
			if r.status != http.StatusCreated {
				t.Errorf("%d %s", r.status, r.body)
				return false
			}
			defer func() { // in any case; a lock that isn't ours any more is left alone, and the work's caller gets no error
				if a, err := c.try(context.Background(), "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", path, owner, r.Token), ""); err != nil ||
					a.status != 200 && a.status != 403 && a.status != 404 && a.status != 410 {
					t.Errorf("%v %+v", err, a)
				}
			}()
			work()
			return true
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for round := range 10 {
					if !doInLock(c[i%2], fmt.Sprint("worker-", i, "-", round), "1m", func() {
						if !mu.TryLock() {
							t.Error("two work at once")
							return
						}
						done.Add(1)
						mu.Unlock()
					}) {
						t.Error("the lock wasn't to be had in a minute")
					}
				}
			})
		}
		wg.Wait()
		if done.Load() != 80 {
			t.Errorf("%d of 80 have worked", done.Load())
		}
		// Of many who try once only one gets it. A look by its path shows it at once: nothing is searched, nothing is refreshed.
		var got atomic.Int32
		for i := range 16 {
			wg.Go(func() {
				const once = "/_lock/global/executions.once"
				r, err := c[i%2].try(context.Background(), "PUT", once, fmt.Sprintf(`{"owner":"once-%d","wait":"0"}`, i))
				switch {
				case err != nil || r.status != 201 && r.status != 409:
					t.Errorf("%v %+v", err, r)
				case r.status == 201:
					got.Add(1)
					if look := c[(i+1)%2].do(200, "", "GET", once, ""); look.Owner != r.Owner {
						t.Errorf("%s has the lock, and the other proxy shows %+v", r.Owner, look)
					}
				}
			})
		}
		if wg.Wait(); got.Load() != 1 {
			t.Errorf("%d of 16 have the lock", got.Load())
		}
		// Work that fails has its lock released, too.
		func() {
			defer func() { _ = recover() }()
			doInLock(c[0], "fails", "0", func() { panic("the work failed") })
		}()
		if !doInLock(c[1], "next", "0", func() {}) {
			t.Error("the lock of work that failed is still held")
		}
		// The lock of an instance that has died ends with its lease. If it comes back, it leaves its successor's lock alone.
		const dies = "/_lock/global/executions.dies"
		dead := c[0].do(201, "", "PUT", dies, `{"owner":"dead","ttl":"50ms"}`)
		heir := c[1].do(201, "", "PUT", dies, `{"owner":"heir","ttl":"1m","wait":"1m"}`)
		if late, err := c[0].try(context.Background(), "DELETE", fmt.Sprintf("%s?owner=dead&token=%d", dies, dead.Token), ""); err != nil || late.status == 200 {
			t.Errorf("%v %+v", err, late)
		}
		c[0].do(409, "lock_held", "PUT", dies, `{"owner":"dead","wait":"0"}`)
		c[1].release(dies, "heir", heir.Token)
		// Somebody else's lock is left alone, and so is none.
		held := c[0].do(201, "", "PUT", path, `{"owner":"instance-1"}`)
		if doInLock(c[1], "instance-2", "50ms", func() { t.Error("worked without the lock") }) {
			t.Error("acquired a lock that is held")
		}
		c[1].do(403, "not_the_owner", "DELETE", fmt.Sprintf("%s?owner=instance-2&token=%d", path, held.Token), "")
		c[1].do(404, "lock_not_found", "DELETE", "/_lock/global/none?owner=instance-2&token=1", "")
		// What isn't a conflict is an error.
		c[1].do(400, "illegal_argument_exception", "PUT", path, `{"owner":"instance-2","ttl":"soon"}`)
		// Locks of an instance that was found dead are released by those who know its tokens; else their leases end.
		r := c[1].do(200, "", "POST", "/_lock/_release", fmt.Sprintf(`{"owner":"instance-1","tokens":[%d]}`, held.Token))
		if !strings.Contains(r.body, `"released":1`) {
			t.Error(r.body)
		}
		c[1].do(404, "lock_not_found", "GET", path, "")
	})
}

// TestSystem4Contentserv is locks on objects in two classes, on the engine alone: whoever saves in the editor goes before what computes in
// the background.
func TestSystem4Contentserv(t *testing.T) {
	eachEngine(t, 2, `, wait: {foreground: 20s, background: 300ms}`, func(t *testing.T, _ *engine.Engine, c []client) { contentserv(t, c) })
}

// contentserv is what the system's account promises, whatever the locks are in.
func contentserv(t *testing.T, c []client) {
	const path = "/products/_lock/doc/4711"
	first := c[0].do(201, "", "PUT", path, `{"owner":"editor-1","note":"Save Content"}`)
	if look := c[1].do(200, "", "GET", path, ""); look.Note != "Save Content" {
		t.Errorf("%+v", look)
	}
	late := c[1].do(409, "lock_wait_timeout", "PUT", path, `{"owner":"kpi","priority":"background"}`) // the class's own time
	if late.Error.Holder.Note != "Save Content" {
		t.Errorf("%+v", late)
	}
	waiting := func(n int) {
		for !strings.Contains(c[0].do(200, "", "GET", path, "").body, fmt.Sprintf(`"waiting":%d`, n)) {
		}
	}
	// Scenario 3: one of the background waits first, one of the foreground comes later, and gets the lock first.
	order := make(chan string, 3)
	var wg sync.WaitGroup
	for i, w := range []struct{ owner, priority string }{{"bulk", "background"}, {"editor-2", "foreground"}, {"editor-3", ""}} { // the default
		c := c[i%2]
		wg.Go(func() {
			class := ""
			if w.priority != "" {
				class = fmt.Sprintf(`,"priority":%q`, w.priority)
			}
			got := c.do(201, "", "PUT", path, fmt.Sprintf(`{"owner":%q%s,"wait":"20s"}`, w.owner, class))
			order <- w.owner
			c.release(path, w.owner, got.Token)
		})
		waiting(i + 1)
	}
	c[0].release(path, "editor-1", first.Token)
	wg.Wait()
	close(order)
	var got []string
	for o := range order {
		got = append(got, o)
	}
	if strings.Join(got, " ") != "editor-2 editor-3 bulk" {
		t.Errorf("in the order %v", got)
	}
	// What can go wrong is told apart.
	session := c[0].do(201, "", "PUT", path, `{"owner":"editor-1","ttl":"50ms"}`)
	next := c[1].do(201, "", "PUT", path, `{"owner":"editor-2","ttl":"1m"}`)
	c[0].do(410, "lease_expired", "PUT", fmt.Sprintf("%s?renew&owner=editor-1&token=%d", path, session.Token), "")
	c[0].do(403, "not_the_owner", "DELETE", fmt.Sprintf("%s?owner=editor-1&token=%d", path, next.Token), "")
	c[0].do(404, "lock_not_found", "DELETE", "/products/_lock/doc/none?owner=editor-1&token=1", "")
	c[1].release(path, "editor-2", next.Token)
}

// TestDefinitiveGuideRename renames a directory of many files while others rename single files in it: nothing is lost, and nothing is
// renamed twice.
func TestDefinitiveGuideRename(t *testing.T) { renameAll(t, 200) }

func TestDefinitiveGuideRenameOfManyFiles(t *testing.T) {
	engine.Long(t)
	renameAll(t, 2000)
}

func renameAll(t *testing.T, files int) {
	eachEngine(t, 2, "", func(t *testing.T, e *engine.Engine, c []client) {
		index := e.Index(t)
		var bulk strings.Builder
		for i := range files {
			fmt.Fprintf(&bulk, `{"index":{"_id":"%d"}}`+"\n"+`{"dir":"/clinton","name":"f%d","renames":0}`+"\n", i, i)
		}
		if a, err := e.Do(t.Context(), "POST", "/"+index+"/_bulk", bulk.String()); err != nil || a.Status != 200 {
			t.Fatalf("%v %+v", err, a)
		}
		tree := "/" + index + "/_lock/tree"
		type file struct {
			Dir     string `json:"dir"`
			Name    string `json:"name"`
			Renames int    `json:"renames"`
		}
		// change reads, changes and writes without any guard: only the lock keeps the others off.
		change := func(i int, f func(*file)) {
			a, err := e.Do(t.Context(), "GET", fmt.Sprintf("/%s/_source/%d", index, i), "")
			var doc file
			if err != nil || json.Unmarshal(a.Body, &doc) != nil {
				t.Errorf("%v %+v", err, a)
				return
			}
			f(&doc)
			body, _ := json.Marshal(doc)
			if a, err = e.Do(t.Context(), "PUT", fmt.Sprintf("/%s/_doc/%d", index, i), string(body)); err != nil || a.Status != 200 {
				t.Errorf("%v %+v", err, a)
			}
		}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for n := range 10 {
					i := (w*53 + n*7) % files
					owner := fmt.Sprint("user-", w)
					got := c[w%2].do(201, "", "PUT", fmt.Sprintf("%s/clinton/f%d", tree, i), fmt.Sprintf(`{"owner":%q,"wait":"10m"}`, owner))
					change(i, func(f *file) { f.Name, f.Renames = fmt.Sprintf("g%d", i), f.Renames+1 })
					c[w%2].release(got.Lock, owner, got.Token)
				}
			})
		}
		wg.Go(func() {
			got := c[0].do(201, "", "PUT", tree+"/clinton", `{"owner":"mover","wait":"10m","ttl":"10m"}`)
			began := time.Now()
			for i := range files {
				change(i, func(f *file) { f.Dir = "/gore" })
			}
			if time.Since(began) > 9*time.Minute {
				t.Error("the move took longer than its lease")
			}
			c[0].release(got.Lock, "mover", got.Token)
		})
		wg.Wait()
		renames := 0
		for i := range files {
			a, err := e.Do(t.Context(), "GET", fmt.Sprintf("/%s/_source/%d", index, i), "")
			var f file
			if err != nil || json.Unmarshal(a.Body, &f) != nil || f.Dir != "/gore" || (f.Name == fmt.Sprintf("g%d", i)) != (f.Renames > 0) {
				t.Errorf("%v %s", err, a.Body)
			}
			renames += f.Renames
		}
		if renames != 40 {
			t.Errorf("%d of 40 renames are there", renames)
		}
	})
}
