package bulk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/jsontext"
	"optimist/internal/uri"
)

// ErrUnreadable reports a bulk that doesn't have the form that the engine documents. The caller forwards the whole request unchanged, so
// that the engine says what is wrong with it.
var ErrUnreadable = errors.New("the bulk can't be read")

// ErrUnended is an ErrUnreadable: the last line doesn't end.
var ErrUnended = fmt.Errorf("%w: it has to end with a newline", ErrUnreadable)

// Defaults are what the request says for all its items. An item may say something else for itself.
type Defaults struct {
	Index, Type string // of the request's path, decoded
	Routing     string
	Types       bool // items may name a mapping type
	// Params are those parameters of the request's query that a request for one document can have: pipeline, refresh, timeout and the like.
	Params []byte
}

// maxDefaults bounds the defaults of a request, in bytes. Each item becomes a request of its own, which repeats the defaults. So long
// defaults and many short items would cost the product of their lengths.
const maxDefaults = 1 << 10

// Fit reports whether the defaults are short enough to be repeated for each item. If they aren't, the bulk has to be forwarded as it is.
func (d *Defaults) Fit() bool {
	return len(d.Index)+len(d.Type)+len(d.Routing)+len(uri.Only(nil, d.Params, repeated...)) <= maxDefaults
}

// Reader goes through the items of a bulk.
type Reader struct {
	Defaults
	// More says that the bulk goes on behind the text. Next then stops before an item that the text has only the beginning of. Without More
	// such an item is unreadable.
	More bool
	// Lenient makes an Odd item of an action that some engines take and others refuse, so that the engine decides. It is for a bulk that is
	// read in windows: once some of its items are written, optimist can't leave the whole bulk to the engine any more.
	Lenient bool

	text   []byte
	read   int                 // items
	shared [len(shared)][]byte // the shared parameters, as they stand in Params
	stream bool                // the request asks for a data stream
}

// NewReader returns a Reader of a bulk's body, or of some whole lines of one.
func NewReader(text []byte, d Defaults) *Reader {
	r := &Reader{Defaults: d, text: text}
	for i, name := range shared {
		r.shared[i] = uri.Only(nil, d.Params, name)
	}
	_, r.stream = uri.Param(d.Params, "require_data_stream")
	return r
}

// Rest is the text that hasn't been read yet. If the text ends within an item, Rest begins with that item.
func (r *Reader) Rest() []byte { return r.text }

// Next reads the next item. ok is false after the last one. The error is ErrUnreadable.
func (r *Reader) Next() (it Item, ok bool, err error) {
	r.text = skipEmpty(r.text)
	line, rest, ended := cutLine(r.text)
	switch {
	case !ended && (r.More || len(r.text) == 0):
		return it, false, nil
	case !ended:
		return it, false, ErrUnended
	}
	if err := it.readAction(line, r); err != nil {
		return it, false, err
	}
	if it.Kind != api.Delete {
		if it.Source, rest, ended = cutLine(rest); !ended && r.More {
			return it, false, nil
		}
		switch {
		case !ended && len(it.Source) > 0:
			return it, false, ErrUnended
		case !ended, it.Kind == api.Update && !it.readUpdate():
			return it, false, ErrUnreadable
		}
		it.Odd = it.Odd || !jsontext.LooksLikeObject(it.Source)
		it.Piped = it.pipes && gjson.GetBytes(it.Source, "upsert").Exists()
	}
	it.Text, it.at = r.text[:len(r.text)-len(rest)], r.read
	r.text = rest
	r.read++
	return it, true, nil
}

// Action reads the action of the next item, if the text has the whole action, but not the whole document. ok is false if the text doesn't
// have the whole action, or if the item has no document.
func (r *Reader) Action() (it Item, ok bool, err error) {
	line, _, ended := cutLine(skipEmpty(r.text))
	if !ended {
		return it, false, nil
	}
	err = it.readAction(line, r)
	return it, err == nil && it.Kind != api.Delete, err
}

// HasAction reports whether the rest begins with a whole action.
func (r *Reader) HasAction() bool {
	return bytes.IndexByte(bytes.TrimLeft(r.text, " \t\r\n"), '\n') >= 0
}

// firstValue is the JSON value with which a text begins; nil if there is none. In the second line of an update the engines read only that.
func firstValue(text []byte) []byte {
	if jsontext.Valid(text) {
		return text
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var v json.RawMessage
	if d.Decode(&v) != nil {
		return nil
	}
	return text[:d.InputOffset()]
}

// Name names the document of an item, and the action.
type Name struct{ Verb, Index, ID, Routing string }

// Place is where a part of a text stands. The zero value is that of no part.
type Place struct{ From, To int }

// Of returns the part.
func (p Place) Of(text []byte) []byte { return text[p.From:p.To] }

// Action is an item that Next may be unable to read.
type Action struct {
	Name
	Line   Place // of the action
	Source Place // of the second line; a delete has none
}

// Actions goes through the items of a bulk that Next may be unable to read. An engine may still carry out such a bulk: engines read no
// further than they need, and some accept whatever follows. An action that no engine knows has no Verb, and is the last one.
func Actions(text []byte, d Defaults) iter.Seq[Action] {
	return func(yield func(Action) bool) {
		next := func(rest []byte) (line Place, after []byte) {
			cut, after, _ := cutLine(rest)
			from := len(text) - len(rest)
			return Place{from, from + len(cut)}, after
		}
		for rest := skipEmpty(text); len(rest) > 0; rest = skipEmpty(rest) {
			a := Action{Name: Name{Index: d.Index, Routing: d.Routing}}
			a.Line, rest = next(rest)
			gjson.ParseBytes(a.Line.Of(text)).ForEach(func(verb, meta gjson.Result) bool {
				a.Verb, _, _ = verbOf([]byte(verb.String()))
				meta.ForEach(a.read)
				return false
			})
			if a.Verb != "" && a.Verb != "delete" {
				a.Source, rest = next(rest)
			}
			if !yield(a) || a.Verb == "" {
				return
			}
		}
	}
}

// Names returns the names of the items, in their order: see Actions. all is false if not all are known, and if there are no items.
func Names(text []byte, d Defaults) (of []Name, all bool) {
	for a := range Actions(text, d) {
		if a.Verb == "" {
			return of, false
		}
		of = append(of, a.Name)
	}
	return of, len(of) > 0
}

// read reads a member of an action.
func (n *Name) read(name, v gjson.Result) bool {
	if v.Type == gjson.Null {
		return true
	}
	switch name.String() {
	case "_index":
		n.Index = v.String()
	case "_id":
		n.ID = v.String()
	case "routing":
		n.Routing = v.String()
	}
	return true
}

// skipEmpty returns the text without the empty lines that it begins with: the engines skip them between items.
func skipEmpty(text []byte) []byte {
	content := 0
	for content < len(text) && (text[content] == '\n' || text[content] == '\r' || text[content] == ' ' || text[content] == '\t') {
		content++
	}
	return text[bytes.LastIndexByte(text[:content], '\n')+1:]
}

// cutLine returns the first line without its end (LF, or CR and LF), and the rest of the text. ended is false if the line has no end.
func cutLine(text []byte) (line, rest []byte, ended bool) {
	line, rest, ended = bytes.Cut(text, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest, ended
}

// verbOf is the action of that name.
func verbOf(name []byte) (verb string, kind api.Kind, known bool) {
	switch string(name) {
	case "index":
		return "index", api.Index, true
	case "create":
		return "create", api.Create, true
	case "update":
		return "update", api.Update, true
	case "delete":
		return "delete", api.Delete, true
	}
	return "", 0, false
}

// memberName is the name of a member. plain is false if that isn't a name in JSON. Names that most actions have take no memory.
func memberName(s *jsontext.Scanner) (name string, plain bool) {
	switch string(s.Name()) {
	case "_id":
		return "_id", true
	case "_index":
		return "_index", true
	}
	return s.PlainName()
}

// scanAction returns a Scanner at the only member of an action. whole is false unless the line is an object with one member, and that
// member is an object.
func scanAction(line []byte) (action jsontext.Scanner, whole bool) {
	if !jsontext.Valid(line) || !utf8.Valid(line) {
		return action, false
	}
	action = jsontext.Scan(line)
	return action, action.IsObject() && action.Next() && action.Comma < 0 && action.Text()[0] == '{'
}

// firstAction is the action that has only the first member of a line: OpenSearch, and Elasticsearch before 8, ignore whatever follows it.
// It is nil if the line doesn't begin with an action.
func firstAction(line []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	if _, err := d.Token(); err != nil { // its name
		return nil
	}
	var meta json.RawMessage
	if d.Decode(&meta) != nil {
		return nil
	}
	return append(bytes.Clone(line[:d.InputOffset()]), '}')
}
