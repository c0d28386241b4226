package compat

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
	"optimist/internal/uri"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

const (
	defaultSize = 10     // of a page, in hits
	maxSize     = 10_000 // of a page, in hits
	findSize    = 1000   // lock documents that are read at once
)

// searchRequest is what a search asks for. Encoded, it is the scroll id for the next page, so nothing is kept between two pages.
type searchRequest struct {
	Scroll  string `json:"optimist"`          // the index, by which the ids of the engine's scrolls are told from these
	Process string `json:"process,omitempty"` // the process_id, in the form of processOf; empty: every lock
	Typed   bool   `json:"typed,omitempty"`
	Size    int    `json:"size"`
	From    int    `json:"from,omitempty"`
	After   string `json:"after,omitempty"` // the last lock of the page before
}

// hit is the document that a client finds for a lock that somebody has.
type hit struct {
	id, lock string
	source   json.RawMessage
	token    int64
	mine     bool // the session that asks has the lock
}

// document makes the document that the client finds for the lock d. ok is false if nobody has the lock: there is no document then.
func (c *Compat) document(d *state.Doc, session string) (f hit, ok bool) {
	if d == nil {
		return f, false
	}
	now := c.o.Locks.Now()
	var n int64
	for i := range d.Holds {
		h := &d.Holds[i]
		if h.Until < now {
			continue
		}
		n++
		f.token, f.lock, f.mine = h.Token, d.Lock, f.mine || session != "" && ownedBy(h, session)
		switch {
		case h.Mode == state.Shared:
			f.source = []byte(`{"lock_type":"shared","lock_count":` + strconv.FormatInt(n, 10) + `}`)
		case jsontext.Valid([]byte(h.Note)) && gjson.Parse(h.Note).IsObject():
			f.source = []byte(h.Note)
		default:
			f.source = []byte("{}")
		}
	}
	if i := strings.LastIndexByte(d.Lock, '/'); n > 0 && i >= 0 {
		id, err := uri.Decode(nil, []byte(d.Lock[i+1:]))
		f.id = string(id)
		return f, err == nil
	}
	return f, false
}

// find looks through all locks of the index. It returns one page of the documents that s asks for, and counts all of them.
func (c *Compat) find(ctx context.Context, s *searchRequest, session string) (list []hit, total int, err error) {
	prefix := c.o.Locks.DocLock(c.o.Index, "")
	for q := (&lockrouter.Query{Prefix: prefix, After: s.After, Size: findSize}); ; {
		page, err := c.o.Locks.Find(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		for _, d := range page.Docs {
			f, ok := c.document(d, session)
			if !ok || s.Process != "" && processOf(gjson.GetBytes(f.source, "process_id")) != s.Process {
				continue
			}
			if total++; total > s.From && len(list) < s.Size {
				list = append(list, f)
			}
		}
		q.After = page.Next
		if page.Next == "" {
			return list, total, nil
		}
	}
}

// search answers a search by process_id, or for all locks.
func (c *Compat) search(ctx context.Context, q *Request, r *reply) (*lockrouter.Answer, error) {
	s, fail := c.parseSearch(q)
	if fail != nil {
		return fail.answer(), nil
	}
	s.Typed = r.typed
	_, scrolled := uri.Param(q.Op.Query, "scroll")
	return c.page(ctx, s, scrolled)
}

// page answers with one page of a search.
func (c *Compat) page(ctx context.Context, s *searchRequest, scrolled bool) (*lockrouter.Answer, error) {
	began := time.Now()
	list, total, err := c.find(ctx, s, "")
	if err != nil {
		return nil, err
	}
	r := &reply{c: c, typed: s.Typed}
	hits := make([]object, len(list))
	for i := range list {
		hits[i] = r.document(list[i].id)
		hits[i]["_score"], hits[i]["_source"] = nil, list[i].source
		s.After = list[i].lock
	}
	body := object{"took": time.Since(began).Milliseconds(), "timed_out": false, "_shards": shards(1),
		"hits": object{"total": json.RawMessage(fmt.Sprintf(`{"value":%d,"relation":"eq"}`, total)), "max_score": nil, "hits": hits}}
	if scrolled {
		s.Scroll, s.From = c.o.Index, 0
		id, _ := json.Marshal(s) // strings and numbers always can be
		body["_scroll_id"] = base64.RawURLEncoding.EncodeToString(id)
	}
	return encode(http.StatusOK, body), nil
}

// parseSearch reads a search from the body, and then from the parameters, which take precedence.
func (c *Compat) parseSearch(q *Request) (*searchRequest, *failure) {
	s := &searchRequest{Size: defaultSize}
	body, err := wholeBody(q.Body)
	if err != nil {
		return nil, err
	}
	bad := ""
	gjson.ParseBytes(body).ForEach(func(k, v gjson.Result) bool {
		bad = s.member(k.Str, v)
		return bad == ""
	})
	if v, ok := uri.Param(q.Op.Query, "q"); ok && bad == "" {
		bad = s.byText(v)
	}
	for _, name := range []string{"size", "from"} {
		if v, ok := uri.Param(q.Op.Query, name); ok && bad == "" {
			bad = s.count(name, string(v))
		}
	}
	if bad != "" {
		return nil, unsupported(bad)
	}
	return s, nil
}

// member reads a member of the body. It returns what is wrong with the member, or "".
func (s *searchRequest) member(name string, value gjson.Result) string {
	switch name {
	case "query":
		ok := false
		if s.Process, ok = process(value, 0); !ok {
			return "they are searched by process_id (a term or match query), or all of them (match_all)"
		}
	case "size", "from":
		return s.count(name, value.Raw)
	case "sort", "_source", "fields", "stored_fields", "version", "track_total_hits", "timeout", "seq_no_primary_term":
	default:
		return "a search of them knows no [" + name + "]"
	}
	return ""
}

// count reads size or from. It returns what is wrong with it, or "".
func (s *searchRequest) count(name, text string) string {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxSize {
		return name + " is from 0 to 10000"
	}
	if name == "size" {
		s.Size = n
	} else {
		s.From = n
	}
	return ""
}

// byText reads the parameter q. It returns what is wrong with it, or "".
func (s *searchRequest) byText(q []byte) string {
	text, err := uri.DecodeValue(nil, q)
	process, ok := strings.CutPrefix(string(text), "process_id:")
	if err != nil || !ok || process == "" || strings.ContainsAny(process, ` *?()[]{}"~^:`) {
		return "they are searched by process_id only"
	}
	s.Process = string(uri.AppendSegment(nil, process))
	return ""
}

// deepest is how deeply the clauses of a query for locks may be nested. Clients' libraries nest two or three.
const deepest = 8

// process returns the process_id that a query asks for, or "" for match_all. The clause may stand alone, or be nested in clauses with
// nothing else in them. ok is false for other queries.
func process(query gjson.Result, depth int) (id string, ok bool) {
	if query.IsArray() && len(query.Array()) == 1 {
		query = query.Array()[0]
	}
	name, clause, ok := only(query)
	if !ok || depth > deepest {
		return "", false
	}
	switch name {
	case "match_all":
		return "", true
	case "constant_score", "bool", "filtered":
		if key, within, ok := only(clause); ok && slices.Contains([]string{"filter", "must", "query"}, key) {
			return process(within, depth+1)
		}
	case "term", "match":
		if key, value, ok := only(clause); ok && key == "process_id" {
			id = clauseProcess(value)
			return id, id != "" // "" would stand for all locks
		}
	}
	return "", false
}

// only returns the member of an object that has exactly one.
func only(o gjson.Result) (name string, value gjson.Result, ok bool) {
	members := o.Map()
	for name, value = range members {
		return name, value, o.IsObject() && len(members) == 1
	}
	return "", gjson.Result{}, false
}

// clauseProcess returns the process_id of a term or match clause in its short or long form, or "" if that isn't a number or a string.
func clauseProcess(value gjson.Result) string {
	if value.IsObject() {
		long := value.Get("@this.value")
		if !long.Exists() {
			long = value.Get("query")
		}
		value = long
	}
	if value.Type != gjson.Number && value.Type != gjson.String {
		return ""
	}
	return processOf(value)
}

// scroll answers with the next page of a scroll over locks, or ends it. It returns nil for a scroll of the engine's.
func (c *Compat) scroll(ctx context.Context, q *Request) (*lockrouter.Answer, error) {
	var ids []string
	for _, v := range gjson.GetBytes(q.Body, "scroll_id").Array() {
		ids = append(ids, v.String())
	}
	if v, ok := uri.Param(q.Op.Query, "scroll_id"); ok {
		id, err := uri.DecodeValue(nil, v)
		if err != nil {
			return nil, nil // the engine says what is wrong with it
		}
		ids = append(ids, string(id))
	}
	if rest := strings.Trim(string(q.Op.Path[len(scrolls):]), "/"); rest != "" {
		ids = append(ids, rest)
	}
	if len(ids) == 0 && !jsontext.Valid(q.Body) {
		ids = append(ids, string(bytes.TrimSpace(q.Body))) // engines up to version 2 take the id as the whole body
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var s searchRequest
	for _, id := range ids { // if one of them is the engine's, the engine gets the request
		text, err := base64.RawURLEncoding.DecodeString(id)
		if err != nil || json.Unmarshal(text, &s) != nil || s.Scroll != c.o.Index {
			return nil, nil
		}
	}
	if q.Method == http.MethodDelete {
		return encode(http.StatusOK, object{"succeeded": true, "num_freed": len(ids)}), nil
	}
	s.Size = min(max(s.Size, 1), maxSize)
	return c.page(ctx, &s, true)
}

// deleteByQuery releases the session's locks that the query finds. The answer lists those of other sessions as conflicts.
func (c *Compat) deleteByQuery(ctx context.Context, q *Request) (*lockrouter.Answer, error) {
	began := time.Now()
	s, fail := c.parseSearch(q)
	if fail != nil {
		return fail.answer(), nil
	}
	s.Size, s.From = 1<<30, 0
	list, total, err := c.find(ctx, s, q.Session)
	if err != nil {
		return nil, err
	}
	var intents []intent
	failures := []object{}
	refuse := func(id, why string) {
		failures = append(failures, object{"index": c.o.Index, "id": id, "status": http.StatusConflict,
			"cause": conflict(&intent{id: id}, why).object()})
	}
	for i := range list {
		if !list[i].mine {
			refuse(list[i].id, "the lock is another session's")
			continue
		}
		in := intent{do: remove, id: list[i].id}
		if s.Process != "" {
			in.guard = list[i].token // not a lease that the session got for another process after the look
		}
		intents = append(intents, in)
	}
	deleted := 0
	for _, res := range c.run(ctx, q, intents) {
		switch {
		case res.err != nil:
			return nil, res.err
		case res.word == "deleted":
			deleted++
		case res.fail != nil:
			refuse(res.in.id, res.fail.reason)
		}
	}
	counts := object{"found": total, "deleted": deleted, "missing": 0, "failed": len(failures)}
	status := http.StatusOK
	if v, _ := uri.Param(q.Op.Query, "conflicts"); len(failures) > 0 && string(v) != "proceed" {
		status = http.StatusConflict
	}
	return encode(status, object{"took": time.Since(began).Milliseconds(), "timed_out": false, "total": total, "deleted": deleted,
		"batches": 1, "version_conflicts": len(failures), "noops": 0, "retries": object{"bulk": 0, "search": 0}, "throttled_millis": 0,
		"requests_per_second": -1.0, "throttled_until_millis": 0, "failures": failures,
		"_indices": object{"_all": counts, c.o.Index: counts}}), nil
}

// get answers a GET of one document.
func (c *Compat) get(ctx context.Context, r *reply, id string, sourceOnly bool) (*lockrouter.Answer, error) {
	docs, err := c.o.Locks.Look(ctx, c.o.Index, []string{id})
	if err != nil {
		return nil, err
	}
	o, f, ok := r.got(docs[0], id)
	switch {
	case ok && sourceOnly:
		return answer(http.StatusOK, f.source), nil
	case ok:
		return encode(http.StatusOK, o), nil
	case sourceOnly:
		reason := "Document not found [" + c.o.Index + "]/[" + id + "]"
		return (&failure{http.StatusNotFound, "resource_not_found_exception", reason, nil}).answer(), nil
	}
	return encode(http.StatusNotFound, o), nil
}

// got makes the answer to a GET of the document of the lock d.
func (r *reply) got(d *state.Doc, id string) (object, hit, bool) {
	f, ok := r.c.document(d, "")
	o := r.document(id)
	o["found"] = ok
	if ok {
		o["_version"], o["_seq_no"], o["_primary_term"], o["_source"] = 1, f.token, 1, f.source
	}
	return o, f, ok
}

// mget answers a _mget.
func (c *Compat) mget(ctx context.Context, q *Request, r *reply) (*lockrouter.Answer, error) {
	var ids []string
	read, fail := wholeBody(q.Body)
	if fail != nil {
		return fail.answer(), nil
	}
	body := gjson.ParseBytes(read)
	for _, v := range body.Get("ids").Array() {
		ids = append(ids, v.String())
	}
	for _, v := range body.Get("docs").Array() {
		if err := c.checkIndex(v); err != nil {
			return err.answer(), nil
		}
		ids = append(ids, v.Get("_id").String())
	}
	if len(ids) == 0 || len(ids) > maxSize {
		return unsupported("a multi-get names from 1 to 10000 of them").answer(), nil
	}
	docs, err := c.o.Locks.Look(ctx, c.o.Index, ids)
	if err != nil {
		return nil, err
	}
	list := make([]object, len(ids))
	for i, d := range docs {
		list[i], _, _ = r.got(d, ids[i])
	}
	return encode(http.StatusOK, object{"docs": list}), nil
}

// bulk answers a bulk request. Each item succeeds or fails by itself.
func (c *Compat) bulk(ctx context.Context, q *Request, r *reply) (*lockrouter.Answer, error) {
	began := time.Now()
	list, err := c.bulkItems(q.Body)
	switch {
	case err != nil:
		return err.answer(), nil
	case len(list) == 0:
		const reason = "Validation Failed: 1: no requests added;"
		return (&failure{http.StatusBadRequest, "action_request_validation_exception", reason, nil}).answer(), nil
	}
	return r.items(c.run(ctx, q, list), time.Since(began)), nil
}

// elsewhere looks at a bulk request whose path doesn't name the index. It refuses one that has an action on a lock. The engine would store
// a document that looks like a lock, and that locks nobody out. It returns nil for other requests.
func (c *Compat) elsewhere(q *Request) *lockrouter.Answer {
	if !bytes.Contains(q.Body, []byte(c.o.Index)) && bytes.IndexByte(q.Body, '\\') < 0 {
		return nil // the name doesn't occur, nor a backslash, with which it could be written in another way
	}
	skip := false
	for line := range bytes.Lines(q.Body) {
		if line = bytes.TrimSpace(line); len(line) == 0 || skip {
			skip = skip && len(line) == 0
			continue
		}
		op, action := actionOf(line)
		t := action.Get("_type").String()
		if op != "" && action.Get("_index").String() == c.o.Index && (t == "" || t == "_doc" || t == c.o.Type) {
			return unsupported("in a bulk request they are changed by PUT /" + c.o.Index + "/" + c.o.Type + "/_bulk, and nothing else with them; " +
				"nothing of this request was carried out").answer()
		}
		skip = op != "delete"
	}
	return nil
}
