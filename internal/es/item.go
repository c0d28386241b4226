package es

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/jsontext"
)

// Item is what the engine's JSON for one document says: an answer to a get or to a write, an item of a multi-get, a search hit. Its
// slices point into that JSON.
type Item struct {
	// Revision's Source is nil where there is no _source.
	doc.Revision
	Numbered bool   // _seq_no and _primary_term are there
	Found    bool   // found is true
	Missing  bool   // found is false
	typed    bool   // _type is there
	Index    []byte // _index, nil where it isn't there
	id       []byte // _id, as JSON
	routing  []byte // _routing, as JSON
	Result   []byte // result, of a write
	Status   int    // status, of an item of a bulk; 0: it isn't there
	Failure  []byte // error

	// of the status, with its comma: where it stands
	statusFrom, statusTo int
}

// ParseItem reads an Item in one pass, without copying anything. If the JSON breaks off, it reads the complete members.
func ParseItem(body []byte) Item {
	s := jsontext.Scan(body)
	if !s.IsObject() {
		return Item{}
	}
	return parseItem(&s)
}

// IsResult reports whether the JSON says to which index a write went, and what became of it. It reads no further than that.
func IsResult(body []byte) bool {
	s := jsontext.Scan(body)
	var index, result bool
	for s.IsObject() && !(index && result) && s.Next() {
		switch string(s.Name()) {
		case "_index":
			index = len(text(s.Text())) > 0
		case "result":
			result = len(text(s.Text())) > 0
		}
	}
	return index && result
}

// Results goes through the items of an answer to a bulk, in one pass. verb is the name of the action. It stops at the first item that can't
// be read.
func Results(answer []byte) iter.Seq2[[]byte, Item] {
	return func(yield func(verb []byte, it Item) bool) {
		all := itemsOf(answer)
		for !all.IsObject() && all.Enter() {
			action := all.Inner()
			it, ok := ReadResult(&action)
			if !ok || !all.Leave(&action) || !yield(action.Name(), it) {
				return
			}
		}
	}
}

// itemsOf is the items of an answer to a bulk, of which nobody knows yet where they end.
func itemsOf(answer []byte) jsontext.Scanner {
	top := jsontext.Scan(answer)
	for top.IsObject() && top.Enter() {
		if string(top.Name()) == "items" {
			return top.Inner()
		}
		if !top.Skip() {
			break
		}
	}
	return jsontext.Scan(nil)
}

// ReadResult reads an item of an answer to a bulk: an action, and what became of it. Then the Scanner is behind the action.
func ReadResult(action *jsontext.Scanner) (it Item, ok bool) {
	if !action.IsObject() || !action.Enter() {
		return it, false
	}
	inner := action.Inner()
	if !inner.IsObject() {
		return it, false
	}
	it = parseItem(&inner)
	return it, action.Leave(&inner)
}

// WithoutStatus is the JSON that the Item was read from, in the form of an answer to a single write: those have no status. It is in the
// memory of that JSON, which is broken afterwards, unless something follows the status.
func (it *Item) WithoutStatus(body []byte) []byte {
	from, rest := it.statusFrom, bytes.TrimLeft(body[it.statusTo:], " \r\n\t")
	if len(rest) != 1 {
		return slices.Concat(body[:from], rest)
	}
	body[from] = '}'
	return body[: from+1 : from+1]
}

// parseItem reads the members of an Item.
func parseItem(s *jsontext.Scanner) (it Item) {
	var seq, term bool
	for before := -1; s.Next(); before = s.Comma {
		value := s.Text()
		switch string(s.Name()) {
		case "_seq_no":
			it.SeqNo, seq = integer(value)
		case "_primary_term":
			it.PrimaryTerm, term = integer(value)
		case "_version":
			it.Version, _ = integer(value)
		case "_source":
			if value[0] == '{' {
				it.Source = value
			}
		case "_index":
			it.Index = text(value)
		case "_id":
			it.id = value
		case "_routing":
			it.routing = value
		case "_type":
			it.typed = true
		case "result":
			it.Result = text(value)
		case "error":
			it.Failure = value
		case "status":
			n, _ := integer(value)
			it.Status, it.statusFrom, it.statusTo = int(n), s.Key, s.End
			if s.Comma >= 0 {
				it.statusTo = s.Comma + 1
			} else if before >= 0 {
				it.statusFrom = before
			}
		case "found":
			it.Found, it.Missing = string(value) == "true", string(value) == "false"
		}
	}
	it.Numbered = seq && term
	return it
}

// Named reports whether it says which document it is of.
func (it *Item) Named() bool { return len(it.Index) > 0 && len(it.id) > len(`""`) }

// ID is the document's, or "".
func (it *Item) ID() string { return gjson.ParseBytes(it.id).String() }

// Ref is the document that it names. likely is what it is in all likelihood: then its texts are used, and none is allocated.
func (it *Item) Ref(likely doc.Ref) doc.Ref {
	if string(it.Index) != likely.Index {
		likely.Index = string(it.Index)
	}
	if !jsontext.IsText(it.id, likely.ID) {
		likely.ID = it.ID()
	}
	return likely
}

// HasID reports whether its id is this one.
func (it *Item) HasID(id string) bool { return jsontext.IsText(it.id, id) }

// IsElsewhere reports whether the item names another document than the one with this id in this concrete index. Without an index, any index
// will do. Without an id, any id will do: the engine makes it.
func (it *Item) IsElsewhere(index, id string) bool {
	if index != "" && len(it.Index) > 0 && string(it.Index) != index {
		return true
	}
	if id == "" || len(it.id) < len(`""`) {
		return false
	}
	return !jsontext.IsText(it.id, id) && utf8.ValidString(id) // the engines put other characters in the place of what isn't text
}

// NoDocument reports whether a 404 to a read of a document, or of its _source, says that there is no document. The engine has one type of
// error for that and for a document without a _source: only the reason tells them apart.
func NoDocument(body []byte) bool {
	if it := ParseItem(body); it.Missing {
		return true
	}
	why := gjson.GetBytes(body, "error")
	return saysNoIndex(why) || why.Get("type").String() == "resource_not_found_exception" &&
		strings.HasPrefix(why.Get("reason").String(), "Document not found")
}

// saysNoIndex reports whether the error of a 404 is the engine's, that there is no such index. With http.detailed_errors.enabled: false, an
// engine before Elasticsearch 9 gives its error as a text.
func saysNoIndex(why gjson.Result) bool {
	return why.Get("type").Str == "index_not_found_exception" || strings.HasPrefix(why.Str, "IndexNotFoundException[")
}

// Routing is what the document was written with, or "".
func (it *Item) Routing() string { return gjson.ParseBytes(it.routing).String() }

func integer(value []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// text is a JSON string's content, as it is written: the names and words of the engine's that are read here have no escapes.
func text(value []byte) []byte {
	if value[0] != '"' {
		return nil
	}
	return value[1 : len(value)-1]
}
