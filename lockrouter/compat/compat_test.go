package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/lockrouter"
	"optimist/lockrouter/compat"
	"optimist/lockrouter/memory"
)

// book is an index of locks on a store in memory, in a bubble of time.
type book struct {
	t      *testing.T
	c      *compat.Compat
	locks  *lockrouter.Router
	lapsed int
}

func read(t *testing.T, test func(b *book)) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{t: t}
		b.locks = lockrouter.New(lockrouter.Options{Store: memory.New(nil), Reserved: "fs", Events: lockrouter.Events{
			Lapsed: func(n int, _ bool) { b.lapsed += n },
		}})
		defer b.locks.Close()
		b.c = compat.New(compat.Options{Locks: b.locks, Index: "fs", Type: "lock", TTL: time.Minute})
		test(b)
	})
}

func parsed(line string) (method string, op *api.Op) {
	method, target, _ := strings.Cut(line, " ")
	op = new(api.Op)
	api.Parse([]byte(method), []byte(target), op)
	return method, op
}

// as makes a request of a session's; nil is one that isn't for the index.
func (b *book) as(session, line, body string) *gjson.Result {
	b.t.Helper()
	method, op := parsed(line)
	a, err := b.c.Serve(b.t.Context(), &compat.Request{Method: method, Op: op, Body: []byte(body), Session: session})
	if err != nil {
		b.t.Fatalf("%s: %v", line, err)
	}
	if a == nil {
		return nil
	}
	if !json.Valid(a.Body) {
		b.t.Fatalf("%s: no JSON: %s", line, a.Body)
	}
	answer := gjson.Parse(fmt.Sprintf(`{"http":%d,"body":%s}`, a.Status, a.Body))
	return &answer
}

// ask makes a request that has to be answered with the status and the result, or the error's type.
func (b *book) ask(session, line, body string, status int64, word string) gjson.Result {
	b.t.Helper()
	a := b.as(session, line, body)
	if a == nil {
		b.t.Fatalf("%s isn't taken", line)
	}
	got := a.Get("body.result").Str + a.Get("body.error.type").Str
	if a.Get("http").Int() != status || got != word {
		b.t.Fatalf("%s %s by %s: want %d %s, got %s", line, body, session, status, word, a.Raw)
	}
	return a.Get("body")
}

const (
	conflict = "version_conflict_engine_exception"
	illegal  = "illegal_argument_exception"
	noShare  = "document_missing_exception"
)

// As printed: with a line broken in the script, and without a comma behind it.
const printed = `{
  "upsert": { "process_id": 123 },
  "script": "if ( ctx._source.process_id != process_id )
  { assert false }; ctx.op = 'noop';"
  "params": {
    "process_id": 123
  }
}`

const (
	up = `{"upsert":{"lock_type":"shared","lock_count":1},
		"script":"if (ctx._source.lock_type == 'exclusive') { assert false }; ctx._source.lock_count++"}`
	down = `{"script": "if (--ctx._source.lock_count == 0) { ctx.op = 'delete' } "}`
)

func TestGlobalLockIsASessionsForItsLease(t *testing.T) {
	read(t, func(b *book) {
		first := b.ask("a", "PUT /fs/lock/global/_create", "{}", 201, "created")
		if first.Get("_type").Str != "lock" || first.Get("_seq_no").Int() == 0 || first.Get("_shards.successful").Int() != 1 {
			t.Error(first)
		}
		b.ask("b", "PUT /fs/lock/global/_create", "{}", 409, conflict)
		b.ask("a", "PUT /fs/_create/global", "{}", 409, conflict) // a create doesn't go in again
		b.ask("b", "DELETE /fs/lock/global", "", 403, "not_the_owner")
		b.ask("a", "DELETE /fs/_doc/global?if_seq_no=7&if_primary_term=1", "", 409, conflict)
		b.ask("a", "DELETE /fs/lock/global", "", 200, "deleted")
		b.ask("a", "DELETE /fs/lock/global", "", 404, "not_found")
		b.ask("a", "POST /fs/_doc/global?op_type=create", "", 201, "created")
		time.Sleep(time.Minute + time.Millisecond) // in the bubble: nobody deletes it
		b.ask("b", "POST /fs/_create/global", "{}", 201, "created")
		b.ask("a", "DELETE /fs/lock/global", "", 403, "not_the_owner") // the late one changes nothing
		if b.lapsed != 1 || b.locks.Held() != 1 {
			t.Errorf("%d lapsed, %d held", b.lapsed, b.locks.Held())
		}
		b.ask("a", "PUT /fs/lock/global/_create", "{}", 409, conflict)
	})
}

// Everybody can see whose a lock is. Whoever names that owner in a request of ours must not get the lock by it.
func TestALockOfTheBookIsTakenOffItsOwnerByNobody(t *testing.T) {
	read(t, func(b *book) {
		created := b.ask("a", "PUT /fs/lock/global/_create", "{}", 201, "created")
		native := func(admin bool, method, path, query, body string) *lockrouter.Answer {
			b.t.Helper()
			a, err := b.locks.Serve(b.t.Context(), &lockrouter.Request{Method: method, Path: []byte(path), Query: []byte(query), Body: []byte(body), Admin: admin})
			if err != nil {
				b.t.Fatal(err)
			}
			return a
		}
		shown := native(false, "GET", "/fs/_lock/doc/global", "", "")
		owner := gjson.GetBytes(shown.Body, "owner").Str
		if shown.Status != 200 || owner == "" || gjson.GetBytes(shown.Body, "token").Exists() {
			b.t.Fatalf("%d %s", shown.Status, shown.Body)
		}
		token := created.Get("_seq_no").Int()
		said := fmt.Sprintf(`{"owner":%q,"token":%d}`, owner, token)
		all := fmt.Sprintf(`{"owner":%q,"locks":[{"id":"global","token":%d}]}`, owner, token)
		for _, try := range [][4]string{
			{"PUT", "/fs/_lock/doc/global", "", `{"owner":"x","wait":"0"}`},
			{"PUT", "/fs/_lock/doc/global", "", fmt.Sprintf(`{"owner":%q}`, owner)},
			{"PUT", "/%66s/_lock/doc/global", "renew&ttl=1ms", said},
			{"DELETE", "/fs/_lock/doc/global", "", said},
			{"POST", "/fs/_lock/docs", "", fmt.Sprintf(`{"owner":%q,"ids":["global"]}`, owner)},
			{"PUT", "/fs/_lock/docs", "renew&ttl=1ms", all},
			{"DELETE", "/fs/_lock/docs", "", all},
		} {
			if a := native(false, try[0], try[1], try[2], try[3]); a.Status != 403 || gjson.GetBytes(a.Body, "error.type").Str != lockrouter.TypeReserved {
				b.t.Errorf("%s: %d %s", try, a.Status, a.Body)
			}
		}
		a := native(false, "POST", "/_lock/_release", "", fmt.Sprintf(`{"owner":%q,"tokens":[%d]}`, owner, token))
		if gjson.GetBytes(a.Body, "released").Int() != 0 {
			b.t.Errorf("released by its token: %s", a.Body)
		}
		b.ask("b", "PUT /fs/lock/global/_create", "{}", 409, conflict) // it is still held
		if a := native(true, "DELETE", "/fs/_lock/doc/global", "", ""); a.Status != 200 {
			b.t.Errorf("the operator: %d %s", a.Status, a.Body)
		}
		b.ask("b", "PUT /fs/lock/global/_create", "{}", 201, "created")
	})
}

// slow is a store whose calls take a while, so that others meet.
type slow struct{ lockrouter.Store }

func (s slow) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	time.Sleep(time.Millisecond) // in the bubble
	return s.Store.Do(ctx, changes)
}

func TestADeleteTakesNothingThatTheSessionHasGotSince(t *testing.T) {
	read(t, func(b *book) {
		locks := lockrouter.New(lockrouter.Options{Store: slow{memory.New(nil)}})
		defer locks.Close()
		b.c = compat.New(compat.Options{Locks: locks, Index: "fs", Type: "lock", TTL: time.Minute})
		b.ask("a", "PUT /fs/lock/1/_create", "{}", 201, "created")
		var wg sync.WaitGroup
		wg.Go(func() { b.ask("c", "PUT /fs/lock/1/_create", "{}", 409, conflict) }) // the lane is busy with it
		synctest.Wait()
		wg.Go(func() { b.ask("a", "DELETE /fs/lock/1", "", 200, "deleted") })
		wg.Go(func() { b.ask("a", "PUT /fs/lock/1/_create", "{}", 201, "created") }) // in the same call as the release
		wg.Wait()
		b.ask("b", "PUT /fs/lock/1/_create", "{}", 409, conflict)
	})
}

func TestScriptedUpsertIsReenteredByItsProcessOnly(t *testing.T) {
	read(t, func(b *book) {
		b.ask("a", "POST /fs/lock/1/_update", printed, 201, "created")
		time.Sleep(40 * time.Second) // in the bubble
		b.ask("a", "POST /fs/lock/1/_update", printed, 200, "noop")
		time.Sleep(40 * time.Second) // the lease was made longer
		failed := b.ask("a", "POST /fs/_update/1", strings.ReplaceAll(printed, "123", "124"), 400, illegal)
		if failed.Get("error.reason").Str != "failed to execute script" || failed.Get("error.caused_by.type").Str != "script_exception" {
			t.Error(failed)
		}
		b.ask("b", "POST /fs/lock/1/_update", printed, 400, illegal) // of the same number, and another session
		b.ask("a", "POST /fs/lock/1/_update", strings.ReplaceAll(printed, "123", `"123"`), 400, illegal)
		painless := `{"script":{"lang":"painless","source":"if (ctx._source.process_id != params.process_id) { throw new Exception() } ctx.op = 'noop'",
			"params":{"process_id":123}},"upsert":{"process_id":123}}`
		b.ask("a", "POST /fs/_update/1", painless, 200, "noop")
		stored := `{"script":{"file":"judge-lock","params":{"process_id":123}},"upsert":{"process_id":123}}`
		b.ask("a", "POST /fs/lock/1/_update", stored, 200, "noop")
		b.ask("a", "PUT /fs/lock/1/_create", `{"process_id":123}`, 409, conflict)
		time.Sleep(time.Minute + time.Millisecond)
		b.ask("a", "POST /fs/lock/1/_update", printed, 201, "created") // it was lost, and the answer says so
	})
}

func TestBulkItemsFailOneByOne(t *testing.T) {
	read(t, func(b *book) {
		b.ask("b", "PUT /fs/lock/2/_create", `{"process_id":9}`, 201, "created")
		body := `{ "create": { "_id": 1}}
{ "process_id": 123    }
{ "create": { "_id": 2}}
{ "process_id": 123    }
{ "create": { "_id": 1}}
{ "process_id": 123    }
{ "index": { "_id": 3}}
{ "process_id": 123    }
{ "update": { "_id": "1" } }
` + strings.ReplaceAll(printed, "\n", " ") + `
{ "delete": { "_index": "fs", "_type": "lock", "_id": "none" } }`
		a := b.ask("a", "PUT /fs/lock/_bulk", body, 200, "")
		var got []string
		a.Get("items").ForEach(func(_, item gjson.Result) bool {
			item.ForEach(func(op, v gjson.Result) bool {
				got = append(got, fmt.Sprint(op.Str, v.Get("_id").Str, ":", v.Get("status").Int(), v.Get("result").Str, v.Get("error.type").Str))
				return true
			})
			return true
		})
		want := "create1:201created create2:409" + conflict + " create1:409" + conflict + " create3:400" + illegal +
			" update1:200noop deletenone:404not_found"
		if strings.Join(got, " ") != want || !a.Get("errors").Bool() {
			t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
		}
		b.ask("a", "POST /fs/_bulk", `{"create":{"_index":"files","_id":"1"}}`+"\n{}\n", 400, illegal)
		b.ask("a", "POST /fs/_bulk", `{"create":{"_id":"1"}}`, 400, "parse_exception")
		b.ask("a", "POST /fs/_bulk", "", 400, "action_request_validation_exception")
	})
}

func TestTreeLocksCountWhoSharesThem(t *testing.T) {
	read(t, func(b *book) {
		path := func(depth int) string {
			return strings.Join(strings.SplitAfterN("%2Fclinton%2fprojects%2felasticsearch", "%2f", 3)[:depth], "")
		}
		const file = "%2Fclinton%2fprojects%2felasticsearch%2fREADME.txt"
		for _, s := range []string{"a", "b"} {
			for depth := 1; depth <= 3; depth++ {
				status, word := int64(201), "created"
				if s == "b" {
					status, word = 200, "updated"
				}
				b.ask(s, "POST /fs/lock/"+strings.TrimSuffix(path(depth), "%2f")+"/_update", up, status, word)
			}
		}
		b.ask("a", "PUT /fs/lock/"+file+"/_create", `{ "lock_type": "exclusive" }`, 201, "created")
		b.ask("b", "PUT /fs/lock/"+file+"/_create", `{ "lock_type": "exclusive" }`, 409, conflict)
		b.ask("b", "PUT /fs/lock/%2Fclinton/_create", `{ "lock_type": "exclusive" }`, 409, conflict)
		b.ask("b", "POST /fs/lock/"+file+"/_update", up, 400, illegal)
		if d := b.ask("c", "GET /fs/lock/%2Fclinton", "", 200, ""); d.Get("_source.lock_count").Int() != 2 || !d.Get("found").Bool() {
			t.Error(d)
		}
		b.ask("a", "POST /fs/lock/%2Fclinton/_update", up, 200, "updated") // twice: it counts
		b.ask("a", "DELETE /fs/lock/"+file, "", 200, "deleted")
		b.ask("c", "POST /fs/lock/%2Fclinton/_update", down, 404, noShare)
		b.ask("a", "POST /fs/lock/%2Fclinton/_update", down, 200, "updated")
		b.ask("b", "POST /fs/lock/%2Fclinton/_update", down, 200, "updated")
		b.ask("b", "POST /fs/lock/%2Fclinton/_update", down, 404, noShare) // another's isn't counted down
		b.ask("a", "POST /fs/_update/%2Fclinton", `{"script":{"source":"if (--ctx._source.lock_count == 0) { ctx.op = 'delete' }"}}`, 200, "deleted")
		b.ask("c", "PUT /fs/lock/%2Fclinton/_create", `{ "lock_type": "exclusive" }`, 201, "created")
		b.ask("a", "POST /fs/lock/%2Fclinton/_update", up, 400, illegal)
		b.ask("a", "DELETE /fs/lock/%2Fclinton%2fprojects", "", 200, "deleted") // its own share
		b.ask("b", "GET /fs/_source/%2Fclinton%2Fprojects", "", 200, "")
	})
}

func TestReleaseByProcess(t *testing.T) {
	read(t, func(b *book) {
		var bulk strings.Builder
		for i := range 25 {
			fmt.Fprintf(&bulk, `{"create":{"_id":"/f%02d"}}`+"\n"+`{"process_id":123}`+"\n", i)
		}
		b.ask("a", "POST /fs/lock/_bulk", bulk.String(), 200, "")
		b.ask("b", "PUT /fs/lock/other/_create", `{"process_id":123}`, 201, "created")
		b.ask("a", "PUT /fs/lock/mine/_create", `{"process_id":1234}`, 201, "created")
		b.ask("a", "POST /fs/_refresh", "", 200, "")
		page := b.ask("a", "GET /fs/lock/_search?scroll=1m", `{"sort":["_doc"],"query":{"match":{"process_id":"123"}}}`, 200, "")
		if page.Get("hits.total.value").Int() != 26 {
			t.Error(page.Get("hits.total"))
		}
		ids := map[string]bool{}
		var release strings.Builder
		for len(page.Get("hits.hits").Array()) > 0 {
			for _, hit := range page.Get("hits.hits").Array() {
				if hit.Get("_source").Raw != `{"process_id":123}` || ids[hit.Get("_id").Str] || hit.Get("_type").Str != "lock" {
					t.Error(hit)
				}
				ids[hit.Get("_id").Str] = true
				fmt.Fprintf(&release, `{"delete":{"_id":%q}}`+"\n", hit.Get("_id").Str)
			}
			page = b.ask("a", "POST /_search/scroll", `{"scroll":"1m","scroll_id":"`+page.Get("_scroll_id").Str+`"}`, 200, "")
		}
		b.ask("a", "DELETE /_search/scroll", `{"scroll_id":["`+page.Get("_scroll_id").Str+`"]}`, 200, "")
		if len(ids) != 26 || !ids["/f24"] || !ids["other"] {
			t.Errorf("found %v", ids)
		}
		released := b.ask("a", "PUT /fs/lock/_bulk", release.String(), 200, "")
		if n := len(released.Get("items.#(delete.result==deleted)#").Array()); n != 25 {
			t.Errorf("%d released", n)
		}
		if !released.Get("items.#(delete.status==403)").Exists() {
			t.Error("the other session's lock was released")
		}
		query := `{"query":{"term":{"process_id":123}}}`
		if a := b.ask("a", "DELETE /fs/lock/_query", query, 409, ""); a.Get("version_conflicts").Int() != 1 {
			t.Error(a)
		}
		if a := b.ask("b", "DELETE /fs/lock/_query", query, 200, ""); a.Get("_indices.fs.deleted").Int() != 1 {
			t.Error(a)
		}
		if a := b.ask("a", "POST /fs/_delete_by_query", `{"query":{"match_all":{}}}`, 200, ""); a.Get("deleted").Int() != 1 {
			t.Error(a)
		}
		if b.locks.Held() != 0 {
			t.Errorf("%d are held", b.locks.Held())
		}
	})
}

// TestNothingIsStoredAsALockThatIsNone: what isn't known is refused, and what isn't for locks is left to the engine.
func TestNothingIsStoredAsALockThatIsNone(t *testing.T) {
	read(t, func(b *book) {
		for _, line := range []string{
			"PUT /fs/lock/1", "POST /fs/lock", "POST /fs/_doc", "PUT /fs/_doc/1", "PUT /f%73/lock/1", "PUT //fs//lock/1", "PUT /fs/lock/a/b",
			"POST /fs/_update_by_query", "PATCH /fs/_doc/1", "POST /fs/_patch/1", "GET /fs/_count", "GET /fs/_msearch", "PUT /fs/lock/1/_update",
			"PUT /fs/lock/_search", "DELETE /fs/_doc/1?if_seq_no=x", "POST /fs/_unheard/of",
		} {
			if a := b.as("a", line, "{}"); a == nil || a.Get("http").Int() != 400 || a.Get("body.error.type").Str != illegal {
				t.Errorf("%s: %v", line, a)
			}
		}
		for _, line := range []string{
			"GET /fs", "PUT /fs", "DELETE /fs", "PUT /fs/_mapping", "GET /fs/_settings", "PUT /fs/file/1", "GET /fs/file/_search", "GET /", "PUT /fsx/lock/1",
			"PUT /other/lock/1/_create", "GET /_search", "GET /f*/_search", "POST /_search/scroll", "DELETE /_search/scroll",
		} {
			if a := b.as("a", line, `{"scroll_id":"FGluY2x1ZGVfY29udGV4dF91dWlkDXF1ZXJ5QW5kRmV0Y2g"}`); a != nil {
				t.Errorf("%s: %s", line, a.Raw)
			}
		}
		for _, body := range []string{
			`{"doc":{"process_id":1}}`, `{"script":"ctx._source.process_id = 7","upsert":{"process_id":1}}`, `{"script":"ctx.op='delete'"}`,
			`{"script":"ctx._source.lock_count--; ctx.op='delete'","upsert":{"lock_type":"shared","lock_count":1}}`, `{"upsert":{"process_id":1}}`,
			`{"script":"ctx._source.lock_count++","upsert":{"lock_type":"shared","lock_count":2}}`, `{"script":{"id":"down"}}`, `{}`,
			`{"script":"assert process_id; 'noop'","upsert":{"process_id":{"a":1}}}`,
			`{"scripted_upsert":true,"script":"assert process_id; 'noop'","upsert":{"process_id":1}}`,
		} {
			b.ask("a", "POST /fs/lock/1/_update", body, 400, illegal)
		}
		b.ask("a", "PUT /fs/lock/1/_create", `{"lock_type":"shared","lock_count":1}`, 400, illegal)
		b.ask("a", "PUT /fs/lock/1/_create", `[]`, 400, "parse_exception")
		b.ask("a", "PUT /fs/lock/1/_create", `{"x":"`+strings.Repeat("y", 2000)+`"}`, 400, illegal)
		for _, query := range []string{`{"term":{"lock_type":"shared"}}`, `{"range":{"process_id":{"gt":1}}}`, `{"bool":{"must_not":{"term":{"process_id":1}}}}`} {
			b.ask("a", "GET /fs/lock/_search", `{"query":`+query+`}`, 400, illegal)
			b.ask("a", "DELETE /fs/lock/_query", `{"query":`+query+`}`, 400, illegal)
		}
		const mixed = `{"index":{"_index":"files","_id":"1"}}` + "\n" + `{"create":{"_index":"fs"}}` + "\n"
		if a := b.as("a", "POST /_bulk", mixed); a != nil { // it only looks like one
			t.Error(a)
		}
		b.ask("a", "POST /_bulk", mixed+`{"create":{"_index":"fs","_id":"1"}}`+"\n{}\n", 400, illegal)
		b.ask("a", "POST /files/_bulk", `{"delete":{"_index":"fs","_type":"lock","_id":"1"}}`+"\n", 400, illegal)
		if a := b.as("a", "POST /_bulk", `{"index":{"_index":"fs","_type":"file","_id":"1"}}`+"\n{}\n"); a != nil {
			t.Error(a)
		}
		if total := b.ask("a", "GET /fs/_search", "", 200, "").Get("hits.total.value").Int(); total != 0 {
			t.Errorf("%d locks", total)
		}
	})
}
