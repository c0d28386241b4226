// Package bulk reads the requests of the engine's _bulk item by item. It also sends items together: package write handles each
// item as a single write, and this package joins their requests.
//
// It doesn't decide which items are guarded, and it merges nothing. Package write does both, for one document at a time.
package bulk

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/jsontext"
	"optimist/internal/uri"
)

// Item is one action of a bulk. Its slices point into the request.
type Item struct {
	Kind   api.Kind // Index, IndexAuto, Create, Update or Delete
	Verb   string   // the action as the client and the answer name it: index, create, update or delete
	Text   []byte   // the whole item: the action's line and the document's, with their ends
	Source []byte   // the document, or the body of an update; nil for a delete

	Index, Type, ID, Routing string // decoded; Type and Routing may be empty; ID is empty if the engine is to make one

	Guarded bool // the client gives a version or a sequence number, in the action or in the body of an update
	Retries bool // the client gives retry_on_conflict
	// Token is the lock_token of the action: the tokens of the locks under which the client works. Empty: there is none. No engine knows
	// that member, so Text with a Token must not be sent.
	Token string
	// PassRejected says that the client gets a rejection by the engine (429). Otherwise the group waits, and sends the item again.
	PassRejected bool
	// Odd says that the item goes as it is: the engine refuses this item only, or only the bulk gives the item a certain meaning.
	Odd bool
	// Elsewhere says that the action names another index than the request's path does.
	Elsewhere bool
	// Piped says that the engine runs an ingest pipeline, which the client names, over the upsert of an update. It does that before it looks
	// whether there is a document.
	Piped bool
	// OnlyInBulk says that a request for the document alone, made later, could write something else than the item: the item names dynamic
	// templates, asks for a data stream, or is an update with an ingest pipeline. An update's own API has none.
	OnlyInBulk bool

	ownIndex  bool   // the action names the index; else the request's path does
	ownType   bool   // the action names a mapping type
	hasTypes  bool   // the engine names the type in its answers, also if nobody else has named it
	ownSource bool   // the action of an update has a _source: it says which part of the document the answer shows
	unrouted  bool   // the action's routing is empty: the document has none, whatever the request says
	params    []byte // the query of a request for this document alone
	pipeline  string // the pipeline that an update's action names, see shared
	pipes     bool   // the action of an update, or the request, names a pipeline
	rest      []byte // members of the action for which such a request has no parameters: ,"name":value…
	at        int    // the place in the bulk, from 0
	meta      int    // where the action's members begin in Text
	place     []byte // the members by which the engine named the document when it last refused the item: "_index":…,"_id":…
	// action is the quoted name that the engine gave the action in that refusal, if it isn't the name that was sent. OpenSearch calls an
	// update index if a pipeline refuses the upsert.
	action []byte
}

// readUpdate reads the second line of an update. The engines read only the first value in it. readUpdate reports false if the engine
// refuses the whole bulk for this line.
func (it *Item) readUpdate() bool {
	if it.Source = firstValue(it.Source); it.Source == nil {
		return false
	}
	var doc, script, upserts bool
	for s := jsontext.Scan(it.Source); s.IsObject() && s.Next(); {
		switch {
		case s.Named("doc"):
			doc = true
		case s.Named("script"):
			script = true
		case s.Named("upsert"), s.Named("doc_as_upsert") && string(bytes.Trim(s.Text(), `"`)) != "false":
			upserts = true // no engine makes the document under a guard
		}
	}
	guardsItself := api.GuardsItself(it.Source)
	it.Guarded = it.Guarded || guardsItself
	return doc != script && !(it.Guarded && upserts) && !(guardsItself && it.Retries)
}

func (it *Item) readAction(line []byte, r *Reader) error {
	action, whole := scanAction(line)
	if !whole && r.Lenient {
		it.Odd = true
		action, whole = scanAction(firstAction(line))
	}
	known := false
	if whole {
		it.Verb, it.Kind, known = verbOf(action.Name())
	}
	if !known {
		return ErrUnreadable
	}
	meta := action.Text()
	it.meta = action.Value + 1
	it.Index, it.Type, it.Routing, it.hasTypes, it.OnlyInBulk = r.Index, r.Type, r.Routing, r.Types, r.stream
	var room [maxMembers]string
	seen := room[:0]
	for s := jsontext.Scan(meta); s.Next(); {
		name, plain := memberName(&s)
		v := gjson.ParseBytes(s.Text())
		switch {
		case !plain, len(seen) == maxMembers, slices.Contains(seen, name): // the engine refuses a member that is there twice
			return ErrUnreadable
		case v.Type != gjson.Null && !it.readMember(name, v): // null counts as missing
			return ErrUnreadable
		}
		seen = append(seen, name)
	}
	// Only the path says for certain which index the client means: a gateway may take the path's first name for a tenant.
	it.Elsewhere = r.Index != "" && it.Index != r.Index
	return it.complete(r)
}

// maxMembers is more members than an action can have, as none may be there twice.
const maxMembers = 32

// readMember reads a member of an action. It reports false for a member that this package doesn't know. Of members with an underscore the
// engines know only these. Elasticsearch before 7 knew others.
func (it *Item) readMember(name string, v gjson.Result) bool {
	if it.readRest(name, v) {
		return true
	}
	text, simple := textOf(name, v)
	if !simple {
		return false
	}
	if strings.ContainsRune(text, utf8.RuneError) { // it may be half of a surrogate pair, which the engine may read in another way
		if name != "_id" && name != "routing" {
			return false
		}
		it.Odd = true
	}
	switch name {
	case "_index":
		it.Index, it.ownIndex = text, true
	case "_type":
		it.Type, it.ownType = text, true
	case "_id":
		it.ID = text
		it.Odd = it.Odd || text == "" // to a request for one document without an id, the engine would give one
	case "routing":
		it.Routing, it.unrouted = text, text == ""
	case "op_type":
		if it.Kind == api.Index && text == "create" { // in other actions it means nothing
			it.Kind, it.Verb = api.Create, "create" // the answer names create, too
		}
	case "version", "version_type", "if_seq_no", "if_primary_term":
		it.Guarded = true
		it.addParam(name, text)
	case "retry_on_conflict":
		it.Retries = true
		it.addParam(name, text)
	case "pipeline", "require_alias":
		it.addParam(name, text)
		return text != "" || name != "pipeline"
	case "lock_token":
		it.Token = text
		return text != "" // as in a query, no text is no token
	default:
		return false
	}
	return true
}

// textOf is a member's value as text. A number keeps its digits, except in members that the engine reads as whole numbers: 1.0 becomes 1.
// simple is false for an array, an object, and null.
func textOf(name string, v gjson.Result) (text string, simple bool) {
	switch {
	case v.Type == gjson.Number && slices.Contains(wholes, name) && strings.ContainsAny(v.Raw, ".eE"):
		if n := int64(v.Num); math.Abs(v.Num) < maxExact && float64(n) == v.Num {
			return strconv.FormatInt(n, 10), true
		}
		return v.Raw, true
	case v.Type == gjson.Number:
		return v.Raw, true
	}
	return v.String(), v.Type == gjson.String || v.IsBool()
}

// readRest reads a member for which a request for one document has no parameter, or another one. It reports false for all other members.
func (it *Item) readRest(name string, v gjson.Result) bool {
	switch {
	case name == "_source" && it.Kind == api.Update && v.Type != gjson.JSON:
		it.ownSource = true
		it.addParam(name, v.String())
		return true
	case name == "pipeline" && it.Kind == api.Update && v.Type != gjson.JSON:
		it.pipeline, it.OnlyInBulk = v.String(), true
		it.pipes = it.pipes || it.pipeline != noPipeline
		return true
	case name == "_source" && v.IsArray(): // the engines refuse it
		return false
	case name == "_source" && it.Kind == api.Update:
		it.readFilter(v)
	case name == "_source", name == "list_executed_pipelines": // it changes only the answer
	case name == "dynamic_templates", name == "require_data_stream":
		it.OnlyInBulk = true
	default:
		return false
	}
	it.rest = append(gjson.AppendJSONString(append(it.rest, ','), name), ':')
	it.rest = append(it.rest, v.Raw...)
	return true
}

// readFilter reads the _source of an update's action, if it is an object, as far as a request for one document has parameters for it.
func (it *Item) readFilter(source gjson.Result) {
	var params [2]string // the includes, and the excludes
	plain := true
	source.ForEach(func(k, v gjson.Result) bool {
		i := 0
		switch k.String() {
		case "includes", "include":
		case "excludes", "exclude":
			i = 1
		default:
			plain = false
		}
		for _, field := range v.Array() {
			plain = plain && field.Type == gjson.String && !strings.Contains(field.Str, ",")
			params[i] += "," + field.Str
		}
		return plain
	})
	if !plain {
		return
	}
	it.addParam("_source", "true")
	for i, name := range shared[firstOfUpdates+1 : firstOfAll] {
		if params[i] != "" {
			it.addParam(name, params[i][1:])
		}
	}
}

// wholes are the members that the engine reads as whole numbers. maxExact is the number up to which a float64 has every whole number.
var wholes = []string{"version", "if_seq_no", "if_primary_term", "retry_on_conflict"}

const maxExact = 1 << 53

func (it *Item) addParam(name, value string) {
	if len(it.params) > 0 {
		it.params = append(it.params, '&')
	}
	it.params = append(append(it.params, name...), '=')
	it.params = uri.AppendFormValue(it.params, value)
}

// complete adds the defaults to the item, and judges the item as a whole.
func (it *Item) complete(r *Reader) error {
	switch {
	case it.Index == "", it.isRefused(r):
		return ErrUnreadable
	case it.ID == "" && it.Kind == api.Index, it.ID == "" && it.Kind == api.Create:
		it.Kind = api.IndexAuto
	case it.ID == "":
		return ErrUnreadable
	}
	if it.Routing != "" {
		it.addParam("routing", it.Routing)
	}
	own, first := it.params, 0
	switch it.Kind {
	case api.Delete:
		first = firstOfAll
	case api.Update: // engines run no pipeline over a document that an update changes
		first = 1
		name, _ := uri.Param(r.shared[0], shared[0])
		it.pipes, it.OnlyInBulk = it.pipes || len(name) > 0 && string(name) != noPipeline, it.OnlyInBulk || len(name) > 0
	}
	_, filters := uri.Param(own, shared[firstOfUpdates]) // the item's own _source parameters replace all of the request's
	for i := first; i < len(shared); i++ {
		if len(r.shared[i]) == 0 || (it.Kind != api.Update || filters) && i >= firstOfUpdates && i < firstOfAll {
			continue
		}
		if _, given := uri.Param(own, shared[i]); given {
			continue
		}
		if len(it.params) > 0 {
			it.params = append(it.params, '&')
		}
		it.params = append(it.params, r.shared[i]...)
	}
	return nil
}

// isRefused reports whether the members of this item have the engine refuse the whole bulk.
func (it *Item) isRefused(r *Reader) bool {
	const longestID = 512 // bytes
	long := len(it.ID) > longestID
	it.Odd = it.Odd || long && it.Kind == api.Update // some engines refuse the whole bulk for it
	return it.ownType && !r.Types || it.Guarded && it.misguarded() || long && (it.Kind == api.Index || it.Kind == api.Create)
}

// misguarded reports whether the guard of this item has the engine refuse the whole bulk. The engine takes a sequence number with its
// primary term, or a version with its type, but not both.
func (it *Item) misguarded() bool {
	it.Odd = it.Odd || it.ID == "" // a document whose id the engine makes has no number yet: only this item conflicts
	seqNo, hasSeqNo := it.number("if_seq_no")
	term, hasTerm := it.number("if_primary_term")
	version, hasVersion := it.number("version")
	kind, _ := uri.Param(it.params, "version_type")
	external := string(kind) == "external" || string(kind) == "external_gte"
	if hasVersion && !external && (version == matchAny || version == matchDeleted) {
		hasVersion, it.Odd = false, true
	}
	switch {
	case it.Verb == "create", hasSeqNo != hasTerm, hasVersion != external, len(kind) > 0 && !external && string(kind) != "internal":
		return true
	case hasSeqNo:
		none := seqNo == -2 && term == 0 // the engines' own way to say that there is no guard
		return hasVersion || it.Retries || !none && (seqNo < 0 || term < 1)
	case hasVersion:
		return it.ID == "" || it.Verb == "update" || version < 0
	}
	return false
}

// The engines' own numbers for any version, and for that of a document that was deleted.
const matchAny, matchDeleted = -3, -4

// number reads a parameter of the item that has to be a whole number. Some engines take other numbers, too, and cut their fraction off: an
// item with such a number is Odd.
func (it *Item) number(name string) (n int64, given bool) {
	text, given := uri.Param(it.params, name)
	n, err := strconv.ParseInt(string(text), 10, 64)
	if given && err != nil {
		it.Odd, n = true, math.MaxInt64
	}
	return n, given
}
