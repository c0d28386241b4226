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

// verb is what a request wants with a lock.
type verb uint8

const (
	create  verb = iota // an exclusive one, that nobody has
	reenter             // an exclusive one, that nobody has but the same process
	share               // a shared one
	unshare             // to give a shared one back
	remove              // to give back what the session has
)

// names are the verbs as items of a bulk answer are called.
var names = [...]string{"create", "update", "update", "update", "delete"}

// intent is what is asked of one lock.
type intent struct {
	do      verb
	id      string
	client  string // as Request.Client
	source  []byte // of the document that would be created
	process string // process_id in the source, as it stands there; empty: none
	same    string // the process_id that the document must have, if it is there
	guard   int64  // the _seq_no that the document must have; 0: any
	script  string // as it stands in the request, for the failure's shape
	bad     *failure
}

// The longest that is kept of a request: the lock's document shows it.
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

// from takes the document that would be created.
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

// processOf is a process_id as it stands in an owner: 123 and "123" are told apart by the document only, as in the engine's
// searches.
func processOf(process gjson.Result) string {
	if !process.Exists() {
		return ""
	}
	return string(uri.AppendSegment(nil, process.String()))
}

// update reads the body of an _update: one of the three scripts of the book, in the syntax of any of the engine's versions.
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

// scriptOf is the script of an _update with its parameters. The source of a stored one isn't known.
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

// asserts reports whether a script compares the process_id, and does nothing else.
func asserts(script string) bool {
	return containsAny(script, "process_id") && containsAny(script, "assert", "throw") && containsAny(script, "'noop'", `"noop"`, "'none'")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

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

// guardOf is the revision that a request names.
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

func badGuard() *failure {
	return unsupported("if_seq_no is the _seq_no that the lock was answered with, and guards a deletion")
}

// named refuses ids that the engine doesn't take.
func (in *intent) named() *failure {
	if in.id == "" || len(in.id) > 512 || !utf8.ValidString(in.id) {
		return unsupported("an id has from 1 to 512 bytes, and is UTF-8")
	}
	return nil
}

// bulkItems reads a bulk body.
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

// actionOf is the one member of an action line.
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

// checkIndex refuses actions on other indices and types: half of the request would be for somebody else.
func (c *Compat) checkIndex(action gjson.Result) *failure {
	if i := action.Get("_index"); i.Exists() && i.String() != c.o.Index {
		return unsupported("a bulk request of locks is of one index; [" + i.String() + "] is another")
	}
	if t := action.Get("_type"); t.Exists() && t.String() != c.o.Type && t.String() != "_doc" {
		return unsupported("a bulk request of locks is of one type; [" + t.String() + "] is another")
	}
	return nil
}

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
		in.guard, in.bad = guard.Int(), in.named()
	}
	return in
}

// wholeBody is the body as a JSON object. Where it isn't one, it may be as the book prints it: without a comma behind the script,
// and with a line broken within it.
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

// mend puts in the commas that are missing behind strings, objects and arrays, and joins strings that are broken.
func mend(body []byte) []byte {
	out := make([]byte, 0, len(body)+4)
	inside := false // a string
	ended := false  // a value, or a key
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

func compact(source []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, source); err != nil {
		return source
	}
	return b.Bytes()
}
