package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
	"optimist/internal/uri"
)

// verb is what a client wants to do with a lock.
type verb uint8

const (
	create  verb = iota // acquire it exclusively; nobody may have it
	reenter             // acquire it exclusively; nobody but the same process may have it
	share               // acquire it together with others
	unshare             // release one shared lease
	remove              // release all leases of the session
)

// names has, for each verb, the action that its item in the answer to a bulk request is named after.
var names = [...]string{"create", "update", "update", "update", "delete"}

// intent is what a client asks of one lock.
type intent struct {
	do      verb
	id      string
	client  string   // as Request.Client
	source  []byte   // the document that the client wants to create
	process string   // its process_id, in JSON; empty: it has none
	same    string   // for reenter: the process_id of the holder that lets the client in, in JSON
	guard   int64    // the _seq_no that the document must have; 0: any
	script  string   // the client's script; failures quote it
	bad     *failure // why the request can't be carried out; nil: it can
}

// How long parts of a request may be that are kept in the lock's document.
const (
	longestSource  = 1024 // bytes
	longestProcess = 256
)

// create reads the body of a create.
func (in *intent) create(body []byte) *failure {
	in.do = create
	body, err := wholeBody(body)
	if err != nil {
		return err
	}
	if t := gjson.GetBytes(body, "lock_type"); t.Exists() && t.Str != "exclusive" {
		return unsupported("only an exclusive lock is created; a shared one is an _update with an upsert and a script that counts up")
	}
	return in.from(body)
}

// from reads the document that the client wants to create.
func (in *intent) from(source []byte) *failure {
	in.source = compact(source)
	process := gjson.GetBytes(source, "process_id")
	switch {
	case len(in.source) > longestSource:
		return unsupported(fmt.Sprintf("the document of a lock has up to %d bytes", longestSource))
	case process.IsObject() || process.IsArray() || process.Exists() && len(processOf(process)) > longestProcess:
		return unsupported(fmt.Sprintf("a process_id is a number or a string of up to %d bytes", longestProcess))
	}
	in.process = process.Raw
	return nil
}

// processOf is a process_id in the form that it has in an owner's name. The number 123 and the string "123" have the same form. The
// engine's searches don't tell them apart, either.
func processOf(process gjson.Result) string {
	if !process.Exists() {
		return ""
	}
	return string(uri.AppendSegment(nil, process.String()))
}

// update reads the body of an _update. The book has three scripts: one enters a lock again, one counts a shared lock up, and one counts it
// down. update recognises each of them in the syntax of all versions of the engine, also if the script is stored in the engine.
func (in *intent) update(body []byte) *failure {
	body, err := wholeBody(body)
	if err != nil {
		return err
	}
	b := gjson.ParseBytes(body)
	for _, key := range []string{"doc", "doc_as_upsert", "scripted_upsert"} {
		if b.Get(key).Exists() {
			return unsupported("an _update of a lock is a script, with " + key + " it is another")
		}
	}
	source, params, stored := scriptOf(b)
	in.script = source
	upsert, script := b.Get("upsert"), strings.Join(strings.Fields(source), "")
	up := containsAny(script, "lock_count++", "++ctx._source.lock_count", "lock_count+=1", "lock_count+1")
	down := containsAny(script, "--ctx._source.lock_count", "lock_count--", "lock_count-=1", "lock_count-1")
	switch {
	case !b.Get("script").Exists():
	case upsert.Get("process_id").Exists() && (stored || asserts(script)):
		return in.reenter(upsert, params)
	case upsert.Get("lock_type").Str == "shared" && upsert.Get("lock_count").Raw == "1" && (stored || up && !down):
		in.do = share
		return in.from([]byte(upsert.Raw))
	case !upsert.Exists() && down && !up && containsAny(script, "'delete'", `"delete"`):
		in.do = unshare
		return nil
	}
	return unsupported("the _update isn't one of the book's: an upsert of process_id with a script that compares it, " +
		"an upsert of a shared lock with a script that counts up, or a script that counts down and deletes at 0")
}

// scriptOf returns the script of an _update, and its parameters. If the script is stored in the engine, its source isn't known.
func scriptOf(body gjson.Result) (source string, params gjson.Result, stored bool) {
	script := body.Get("script")
	if !script.IsObject() {
		return script.String(), body.Get("params"), false
	}
	stored = true
	for _, key := range []string{"source", "inline"} {
		if s := script.Get(key); s.Type == gjson.String {
			source, stored = s.Str, false
		}
	}
	return source, script.Get("params"), stored
}

// asserts reports whether a script only compares the process_id, and fails if it is another one.
func asserts(script string) bool {
	return containsAny(script, "process_id") && containsAny(script, "assert", "throw") && containsAny(script, "'noop'", `"noop"`, "'none'")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// reenter reads the upsert and the parameters of a script that compares the process_id. The script compares it with the parameter, if there
// is one, else with the process_id of the upsert.
func (in *intent) reenter(upsert, params gjson.Result) *failure {
	in.do = reenter
	if f := in.from([]byte(upsert.Raw)); f != nil {
		return f
	}
	in.same = in.process
	if p := params.Get("process_id"); p.Exists() {
		in.same = p.Raw
	}
	return nil
}

// guardOf reads the _seq_no that a request requires, from its parameters; 0 if it requires none.
func guardOf(query []byte) (int64, *failure) {
	if _, ok := uri.Param(query, "version"); ok {
		return 0, unsupported("their revision is named by if_seq_no, not by version")
	}
	v, ok := uri.Param(query, "if_seq_no")
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 {
		return 0, badGuard()
	}
	return n, nil
}

// badGuard refuses an if_seq_no that isn't the number of a lock, or is on another request than a deletion.
func badGuard() *failure {
	return unsupported("if_seq_no is the _seq_no that the lock was answered with, and guards a deletion")
}

// checkID refuses ids that the engine would refuse.
func (in *intent) checkID() *failure {
	if in.id == "" || len(in.id) > 512 || !utf8.ValidString(in.id) {
		return unsupported("an id has from 1 to 512 bytes, and is UTF-8")
	}
	return nil
}

// bulkItems reads the body of a bulk request. An item that can't be carried out has its failure in bad. If a line can't be read, or an item
// isn't for the locks, the whole request fails.
func (c *Compat) bulkItems(body []byte) ([]intent, *failure) {
	var list []intent
	lines := bytes.Lines(body)
	var action gjson.Result
	var op string
	for line := range lines {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if op == "" {
			if op, action = actionOf(line); op == "" {
				return nil, malformed("the action line can't be read: " + string(line[:min(len(line), 100)]))
			}
			if err := c.checkIndex(action); err != nil {
				return nil, err
			}
			if op != "delete" {
				continue
			}
			line = nil
		}
		list = append(list, item(op, action, line))
		op = ""
	}
	if op != "" {
		return nil, malformed("the last action has no document")
	}
	return list, nil
}

// actionOf reads an action line of a bulk body: the name of the action, and its object. The name is empty if the line isn't one.
func actionOf(line []byte) (op string, action gjson.Result) {
	if !jsontext.Valid(line) {
		return "", action
	}
	gjson.ParseBytes(line).ForEach(func(k, v gjson.Result) bool {
		op, action = k.Str, v
		return false
	})
	switch op {
	case "create", "index", "update", "delete":
		return op, action
	}
	return "", action
}

// checkIndex refuses actions on other indices and types. The engine would have to carry those out, and one request can't go to both.
func (c *Compat) checkIndex(action gjson.Result) *failure {
	if i := action.Get("_index"); i.Exists() && i.String() != c.o.Index {
		return unsupported("a bulk request of locks is of one index; [" + i.String() + "] is another")
	}
	if t := action.Get("_type"); t.Exists() && t.String() != c.o.Type && t.String() != "_doc" {
		return unsupported("a bulk request of locks is of one type; [" + t.String() + "] is another")
	}
	return nil
}

// item reads one item of a bulk body: its action, and the line behind it.
func item(op string, action gjson.Result, line []byte) intent {
	in := intent{id: action.Get("_id").String()}
	guard := action.Get("if_seq_no")
	switch op {
	case "create":
		in.bad = in.create(line)
	case "update":
		in.bad = in.update(line)
	case "delete":
		in.do = remove
	default:
		in.bad = unsupported("a lock is created with create, not with index")
	}
	switch {
	case in.bad != nil:
	case action.Get("version").Exists() || action.Get("_version").Exists():
		in.bad = unsupported("their revision is named by if_seq_no, not by version")
	case guard.Exists() && (op != "delete" || guard.Type != gjson.Number || guard.Int() < 1):
		in.bad = badGuard()
	default:
		in.guard, in.bad = guard.Int(), in.checkID()
	}
	return in
}

// wholeBody returns the body, which has to be a JSON object. The book prints some bodies that aren't valid JSON: a comma is missing behind
// the script, or a string has a line break in it. wholeBody mends these two mistakes. An empty body is {}.
func wholeBody(body []byte) ([]byte, *failure) {
	if len(bytes.TrimSpace(body)) == 0 {
		return []byte("{}"), nil
	}
	if !jsontext.Valid(body) {
		body = mend(body)
	}
	if !jsontext.Valid(body) || !gjson.ParseBytes(body).IsObject() {
		return nil, malformed("the body is not a JSON object")
	}
	return body, nil
}

// mend adds the commas that are missing behind strings, objects and arrays, and makes a space of each line break in a string.
func mend(body []byte) []byte {
	out := make([]byte, 0, len(body)+4)
	inside := false // i is in a string
	ended := false  // a string, an object or an array has just ended, so a comma or a colon has to follow
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case inside && c == '\\' && i+1 < len(body):
			out = append(out, c)
			i++
			c = body[i]
		case inside && (c == '\n' || c == '\r'):
			c = ' '
		case inside:
			inside, ended = c != '"', c == '"'
		case c == '"' || c == '{':
			if ended {
				out = append(out, ',')
			}
			inside, ended = c == '"', false
		case c == '}' || c == ']':
			ended = true
		case c != ' ' && c != '\n' && c != '\r' && c != '\t':
			ended = false
		}
		out = append(out, c)
	}
	return out
}

// compact takes white space out of a document. It returns a document that isn't valid JSON as it is.
func compact(source []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, source); err != nil {
		return source
	}
	return b.Bytes()
}
