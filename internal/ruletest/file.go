package ruletest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/intercept"
	"optimist/internal/uri"
)

// File is a file of tests.
type File struct {
	Name  string
	Tests []Test
}

// Test is one test: a document, the writes to it, and the expected result.
type Test struct {
	// Name says what the test finds out. Required, and unique in its file.
	Name string `json:"name"`

	// Request is method and path of the write, as in `PUT /shop/_doc/1`. Required, unless every writer has its own.
	Request string `json:"request"`

	// Headers are further headers of the write, and of the read before it. The Content-Type is JSON; of a PATCH it is
	// application/merge-patch+json for an object, application/json-patch+json for a list.
	Headers config.JSON `json:"headers"`

	// User is the client's name in Basic credentials, which match.users asks for; the password is empty. null: nobody. Default: whom the
	// headers name.
	User config.JSON `json:"user"`

	// Via is how the write names its base: session (default: the client names its session), inferred (it names none), if_match (the ETag
	// of its read), stamp (its read has the rule's stamp, and so has the sent body).
	Via string `json:"via"`

	// Now is optimist's time for this test, as in 2026-01-01T00:00:00Z. Default: the real one.
	Now string `json:"now"`

	// Base is the document as the client reads it. null: the client looks, and there is none. Without it the client doesn't read.
	Base config.JSON `json:"base"`

	// Current is the document that another client writes after that. null: it deletes the document. Without it no other client writes in
	// between.
	Current config.JSON `json:"current"`

	// Others are writes of other clients, through optimist, after the client has read; each reads just before it writes.
	Others []Write `json:"others"`

	// Sent is the body of the write.
	Sent config.JSON `json:"sent"`

	// Writers, in place of sent, are several clients that all read the same base and then write, in this order.
	Writers []Write `json:"writers"`

	// Expect is what must come of it.
	Expect Expect `json:"expect"`

	key    string // in the file
	line   int
	now    time.Time
	writes []*Write // those that are tested: the test's own, or its writers
}

// Write is one client's write.
type Write struct {
	// Name stands in failures. Default: its number.
	Name string `json:"name"`
	// Request is method and path; default: the test's.
	Request string `json:"request"`
	// Headers are further headers; the test's come first.
	Headers config.JSON `json:"headers"`
	// User is as in the test, whose it is by default; null: nobody.
	User config.JSON `json:"user"`
	// Via is as in the test, whose it is by default.
	Via string `json:"via"`
	// Sent is the body.
	Sent config.JSON `json:"sent"`
	// Expect is what must come of it; document is the one that is stored right after.
	Expect Expect `json:"expect"`

	key                string // in the file
	requestKey, viaKey string // where what it has of its test stands there
	request            request
}

// Expect is what must come of a write. Keys that are missing aren't compared.
type Expect struct {
	// Document is what is stored in the end; null: there is none. The order of keys doesn't count, numbers are compared digit by digit.
	Document config.JSON `json:"document"`
	// Outcome is how the write ended: passed, guarded, merged, combined, retried, refused, not_sent or unknown.
	Outcome string `json:"outcome"`
	// Status is that of the answer.
	Status int `json:"status"`
	// Error is the type of the answer's error, or a part of its reason.
	Error string `json:"error"`
	// Result is that of the answer: created, updated, deleted, noop or not_found.
	Result string `json:"result"`
	// Reason is why the write was not guarded, or not merged, as in the outcome.
	Reason string `json:"reason"`
	// Overwrote are the paths at which a value of somebody else's was replaced; [] for none.
	Overwrote []string `json:"overwrote"`
	// Base is where the base came from: none, explicit, if_match, stamp, session, view, absent, lost or fetched.
	Base string `json:"base"`
	// Ambiguous says whether several revisions could have been the base.
	Ambiguous *bool `json:"ambiguous"`
	// Attempts is how many writes were sent to the engine.
	Attempts *int `json:"attempts"`
	// Rule is the name of the rule that takes the write; null: none does.
	Rule config.JSON `json:"rule"`
	// Noop: the write succeeds, and nothing had to be written.
	Noop *bool `json:"noop"`
	// Unchanged: nothing was written, whatever the answer is.
	Unchanged *bool `json:"unchanged"`
	// Refused: the answer is an error, and nothing was written.
	Refused *bool `json:"refused"`
	// Answer are members that the answer must have, among others.
	Answer config.JSON `json:"answer"`
}

// request is a request line, taken apart.
type request struct {
	method, target string
	index          string
	path           string // of the document, as /index/_doc/id
	routing        string // the query of reads, with its question mark
	op             api.Kind
}

// Load reads a file of tests and checks it. The error is a config.Problems where the content is wrong.
func Load(name string) (*File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the tests can't be read: %w", err)
	}
	return Parse(name, data)
}

// Parse is Load of data.
func Parse(name string, data []byte) (*File, error) {
	var content struct {
		Tests []Test `json:"tests"`
	}
	decoded, problems := config.Decode(name, data, &content)
	f := &File{Name: name, Tests: content.Tests}
	c := checker{file: decoded, problems: problems, known: map[string]bool{}}
	for _, p := range problems {
		c.known[p.Key] = true
	}
	if len(f.Tests) == 0 && len(problems) == 0 {
		c.fail("tests", "there are no tests in it; a file of tests holds `tests:`, a list")
	}
	lines := map[string]int{}
	for i := range f.Tests {
		t := &f.Tests[i]
		t.key = "tests[" + strconv.Itoa(i) + "]"
		t.line = decoded.Line(t.key)
		switch {
		case t.Name == "" && c.wrong(t.key+".name"):
		case t.Name == "":
			c.fail(t.key, "a test needs a name that says what it shows")
		case lines[t.Name] != 0:
			c.fail(t.key+".name", "%q is the name of the test in line %d, too", t.Name, lines[t.Name])
		}
		lines[t.Name] = t.line
		c.test(t)
	}
	if len(c.problems) > 0 {
		c.problems.Sort()
		return nil, c.problems
	}
	return f, nil
}

// checker finds what the types of a file don't say.
type checker struct {
	file     *config.Decoded
	problems config.Problems
	known    map[string]bool // keys that were found to be wrong already
}

func (c *checker) fail(key, format string, args ...any) {
	if c.known[key] {
		return
	}
	c.known[key] = true
	c.problems = append(c.problems, c.file.Fail(key, format, args...))
}

// wrong reports whether something was found to be wrong with a key, or within it.
func (c *checker) wrong(key string) bool {
	for k := range c.known {
		if rest, ok := strings.CutPrefix(k, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func (c *checker) test(t *Test) {
	if t.Now != "" {
		var err error
		if t.now, err = time.Parse(time.RFC3339Nano, t.Now); err != nil {
			c.fail(t.key+".now", "%q is not a time; write it as in 2026-01-01T00:00:00Z", t.Now)
		}
	}
	c.user(t.key, &t.User, &t.Headers)
	c.document(t.key+".base", &t.Base)
	c.document(t.key+".current", &t.Current)
	if r, _ := readRequest(t.Request); r.op == api.IndexAuto && (t.Base.IsSet || t.Current.IsSet) {
		c.fail(t.key+".request", "%q creates a document with a new id, so it has neither base nor current", t.Request)
	}
	c.list(t, t.Others, "others")
	switch {
	case len(t.Writers) > 0:
		if t.Sent.IsSet {
			c.fail(t.key+".sent", "with writers, each writer has a sent of its own")
		}
		t.writes = c.list(t, t.Writers, "writers")
		c.together(t)
	default:
		own := &Write{Request: t.Request, Headers: t.Headers, User: t.User, Via: t.Via, Sent: t.Sent, Expect: t.Expect, key: t.key,
			requestKey: t.key + ".request", viaKey: t.key + ".via"}
		c.write(own)
		t.writes = []*Write{own}
	}
	if !t.Expect.any() && !slices.ContainsFunc(t.writes, func(w *Write) bool { return w.Expect.any() || c.wrong(w.key+".expect") }) {
		c.fail(t.key, "the test expects nothing; say what in expect")
	}
}

// list checks the writes of a test that stand in a list.
func (c *checker) list(t *Test, list []Write, name string) (writes []*Write) {
	for i := range list {
		c.inherit(t, &list[i], t.key+"."+name+"["+strconv.Itoa(i)+"]")
		c.write(&list[i])
		writes = append(writes, &list[i])
	}
	return writes
}

// inherit gives a write what its test says for all.
func (c *checker) inherit(t *Test, w *Write, key string) {
	w.key = key
	w.requestKey, w.viaKey = key+".request", key+".via"
	if w.Request == "" {
		w.Request, w.requestKey = t.Request, t.key+".request"
	}
	if w.Via == "" {
		w.Via, w.viaKey = t.Via, t.key+".via"
	}
	c.user(key, &w.User, &w.Headers)
	if !w.User.IsSet && !hasCredentials(&w.Headers) {
		w.User = t.User
	}
	switch {
	case !w.Headers.IsSet:
		w.Headers = t.Headers
	case t.Headers.IsSet && isObject(t.Headers) && isObject(w.Headers) && len(t.Headers.Text) > 2 && len(w.Headers.Text) > 2:
		all := append(slices.Clone(t.Headers.Text[:len(t.Headers.Text)-1]), ',')
		w.Headers.Text = append(all, w.Headers.Text[1:]...)
	}
}

// together checks what a test with several writers expects as a whole: that is about the document.
func (c *checker) together(t *Test) {
	e := t.Expect
	e.Document, e.Unchanged = config.JSON{}, nil
	if e.any() {
		c.fail(t.key+".expect", "with writers, the test's own expect has only document and unchanged; put the rest under the expect of a writer")
	}
	c.expect(t.key+".expect", &t.Expect)
}

func isObject(j config.JSON) bool { return strings.HasPrefix(string(j.Text), "{") }

// document checks that what is to be stored can be.
func (c *checker) document(key string, j *config.JSON) {
	if j.IsSet && !j.Null() && !isObject(*j) {
		c.fail(key, "a document is an object, with keys and values; null stands for none")
	}
}

func (c *checker) write(w *Write) {
	var reason string
	if w.Request == "" && !c.wrong(w.requestKey) {
		c.fail(w.key, "a write needs a request, as in PUT /shop/_doc/1")
	} else if w.request, reason = readRequest(w.Request); reason != "" {
		c.fail(w.requestKey, "%q %s", w.Request, reason)
	}
	if w.request.op != api.Delete && w.request.op != api.Other && !w.Sent.IsSet && !c.wrong(w.key+".sent") {
		c.fail(w.key, "the write needs a body; put it under sent")
	}
	c.choice(w.viaKey, w.Via, []string{"session", "inferred", "if_match", "stamp"})
	c.headers(w)
	c.expect(w.key+".expect", &w.Expect)
}

func (c *checker) headers(w *Write) {
	if !w.Headers.IsSet || w.Headers.Null() {
		return
	}
	if !isObject(w.Headers) {
		c.fail(w.key+".headers", "headers are names with values, as in {X-User: anna}")
		return
	}
	gjson.ParseBytes(w.Headers.Text).ForEach(func(k, v gjson.Result) bool {
		switch {
		case v.IsObject() || v.IsArray() || v.Type == gjson.Null:
			c.fail(w.key+".headers", "the value of the header %s is not a text", k.String())
		default:
			if reason := badHeader(k.String(), v.String()); reason != "" {
				c.fail(w.key+".headers", "%s", reason)
			}
		}
		return true
	})
}

// badHeader says why a header can't be sent; "" if it can.
func badHeader(name, value string) string {
	control := func(r rune) bool { return r != '\t' && unicode.IsControl(r) }
	switch {
	case !config.IsToken(name) || strings.ContainsFunc(value, control):
		return strconv.Quote(name) + " is not a header"
	case strings.EqualFold(name, "Content-Length"), strings.EqualFold(name, "Transfer-Encoding"),
		strings.EqualFold(name, intercept.DryRunField):
		return name + " can't be given here"
	}
	return ""
}

// user checks who a client says that it is, against the headers that are given together with that.
func (c *checker) user(key string, user, headers *config.JSON) {
	if !user.IsSet || user.Null() {
		return
	}
	switch v := gjson.ParseBytes(user.Text); {
	case v.Type != gjson.String:
		c.fail(key+".user", "a user is a name; if %s is one, write it in quotes", v.Raw)
	case !UserName(v.String()):
		c.fail(key+".user", "%q is not a user's name: it can't have a colon in it, nor be empty; null stands for nobody", v.String())
	case hasCredentials(headers):
		c.fail(key+".user", "the header Authorization names the user, too; leave one of them out")
	}
}

// UserName reports whether Basic credentials can have a user of that name (RFC 7617).
func UserName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r == ':' || unicode.IsControl(r) })
}

func hasCredentials(headers *config.JSON) (has bool) {
	gjson.ParseBytes(headers.Text).ForEach(func(k, _ gjson.Result) bool {
		has = has || strings.EqualFold(k.String(), "Authorization")
		return true
	})
	return has
}

// readRequest takes a request line apart. reason says why it is not a write of one document.
func readRequest(line string) (r request, reason string) {
	method, target, ok := strings.Cut(strings.TrimSpace(line), " ")
	r.method, r.target = method, strings.TrimSpace(target)
	if !ok || !strings.HasPrefix(r.target, "/") || strings.ContainsAny(r.target, " \t\r\n#") || method != strings.ToUpper(method) {
		return r, "is not a request; write method and path, as in PUT /shop/_doc/1"
	}
	for _, b := range []byte(r.target) {
		if b < 0x21 || b > 0x7e {
			return r, "has a character that must be percent-encoded in a path"
		}
	}
	path, query, _ := strings.Cut(r.target, "?")
	_, err1 := uri.Decode(nil, []byte(path))
	_, err2 := uri.Pairs([]byte(query), uri.DecodeValue)
	if err1 != nil || err2 != nil {
		return r, "has a % that begins no percent-encoded character; the character itself is written %25"
	}
	var op api.Op
	api.Parse([]byte(method), []byte(r.target), &op)
	if !op.Kind.Write() && op.Kind != api.IndexAuto {
		return request{}, "is not a write of one document, as PUT /shop/_doc/1 is"
	}
	r.op, r.index = op.Kind, api.Name(op.Index)
	r.path = "/" + string(op.Index) + "/_doc/" + string(op.ID)
	if v, ok := uri.Param(op.Query, "routing"); ok {
		r.routing = "?routing=" + string(v)
	}
	return r, ""
}
