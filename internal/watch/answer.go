package watch

import (
	"iter"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/respond"
	"optimist/internal/rule"
)

// Document is one document in an answer: to a get, to a multi-get or to a search.
type Document struct {
	es.Item
	Ref     doc.Ref // by the index's own name, where the answer tells it
	name    string  // the index as the request names it; "" if it names several
	whole   bool    // it is there, and the answer shows all of it
	absent  bool    // the answer says that there is none
	noIndex bool    // nor the index, which the first write may make
	stale   bool    // the client's session has a newer one in hand
	hit     bool    // of a search: its routing is its own, whatever the request's
	// elsewhere says that the request's path names another index.
	elsewhere bool
	another   bool // the answer is about another document: nobody knows what its client has seen of this one
	from      int  // where its _source stands in the answer

	watches, stamper *rule.Rule
}

// read reads the document from a part of an answer.
func (d *Document) read(answer, part []byte) {
	d.Item = es.ParseItem(part)
	d.place(answer, part)
}

// place says where the document is that was read from a part of an answer.
func (d *Document) place(answer, part []byte) {
	if d.Index != nil && string(d.Index) != d.Ref.Index {
		d.Ref.Index = string(d.Index)
	}
	if d.Source != nil {
		d.from = cap(answer) - cap(d.Source) // Source is cut out of the answer
	} else {
		d.noIndex = string(es.Member(part, "error", "type")) == `"index_not_found_exception"`
	}
}

// readOne reads the answer to a get.
func (d *Document) readOne(status int, answer []byte) {
	if d.Item = es.ParseItem(answer); d.IsElsewhere("", d.Ref.ID) {
		d.Item, d.another = es.Item{}, true
		return
	}
	d.place(answer, answer)
	d.whole = status == http.StatusOK && d.Found && d.Source != nil
	d.absent = status == http.StatusNotFound && (d.Missing || d.noIndex)
}

// MaxDocuments is how many documents of one multi-get are remembered or stamped at most: of an answer with more, none is.
const MaxDocuments = 10_000

// several are the documents in the answer to a multi-get, in their order: the answer doesn't repeat their routing. If the client hasn't
// asked for all of a document, the answer doesn't prove that the document is absent, either. If the answer doesn't fit the request, there
// are no documents. few is false if there are more than MaxDocuments.
func several(op *api.Op, routing string, requestBody, answer []byte) (documents []Document, few bool) {
	var parts [][]byte
	for part := range es.Elements(answer, "docs") {
		if parts = append(parts, part); len(parts) > MaxDocuments {
			return nil, false
		}
	}
	documents = make([]Document, 0, len(parts))
	usual := Document{Ref: doc.Ref{Index: api.Name(op.Index), Routing: routing}}
	n := 0
	for wanted := range eachWanted(requestBody) {
		if n++; n > len(parts) {
			return nil, true
		}
		d := usual
		whole := d.want(wanted)
		id := d.Ref.ID
		d.name = d.Ref.Index
		d.read(answer, parts[n-1])
		d.whole, d.absent = whole && d.Found && d.Source != nil, whole && (d.Missing || d.noIndex)
		d.elsewhere = usual.Ref.Index != "" && d.name != usual.Ref.Index
		if d.ID() == id {
			documents = append(documents, d)
		}
	}
	if n != len(parts) {
		return nil, true
	}
	return documents, true
}

// want reads which document is asked for, an object or an id alone, and whether all of it is.
func (d *Document) want(wanted gjson.Result) (whole bool) {
	if !wanted.IsObject() {
		d.Ref.ID = wanted.String()
		return true
	}
	whole = true
	wanted.ForEach(func(k, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true // as if it weren't there: Java's high-level client writes all members
		}
		switch k.String() {
		case "_id":
			d.Ref.ID = v.String()
		case "_index":
			d.Ref.Index = v.String()
		case "routing", "_routing":
			d.Ref.Routing = v.String()
		case "_source":
			whole = whole && wholeSource(v)
		case "stored_fields", "fields":
			whole = false
		}
		return true
	})
	return whole
}

// eachWanted are the documents that the body of a multi-get asks for: objects of docs, and ids. The engines take both in one
// body, and answer in the order in which they stand there.
func eachWanted(requestBody []byte) iter.Seq[gjson.Result] {
	return func(yield func(gjson.Result) bool) {
		gjson.ParseBytes(requestBody).ForEach(func(k, list gjson.Result) (more bool) {
			more = true
			if key := k.String(); key == "docs" || key == "ids" {
				list.ForEach(func(_, wanted gjson.Result) bool {
					more = yield(wanted)
					return more
				})
			}
			return more
		})
	}
}

// hits are the documents of a search. What stands below a hit, such as inner hits, stays aside. name is the index that the
// search names, "" if it names several.
func hits(answer []byte, name string) iter.Seq[*Document] {
	return func(yield func(*Document) bool) {
		for hit := range es.Elements(answer, "hits", "hits") {
			if d := readHit(answer, hit, name); d.whole && !yield(d) {
				return
			}
		}
	}
}

// readHit reads a hit, which is a part of the answer.
func readHit(answer, hit []byte, name string) *Document {
	d := &Document{name: name, hit: true}
	d.read(answer, hit)
	d.Ref.ID, d.Ref.Routing = d.ID(), d.Routing()
	d.whole = d.Source != nil && d.Index != nil
	return d
}

// wholeHits reports whether a search's body asks for the whole _source of its hits.
func wholeHits(requestBody []byte) bool {
	whole := true
	gjson.ParseBytes(requestBody).ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "_source":
			whole = whole && wholeSource(v)
		case "stored_fields", "collapse": // with which some engines put the numbers into inner hits, too
			whole = false
		}
		return whole
	})
	return whole
}

// partialHits reports whether a search's body asks for a part of the _source of its hits, or for nothing of it.
func partialHits(requestBody []byte) bool {
	v := gjson.GetBytes(requestBody, "_source")
	return v.Exists() && !wholeSource(v)
}

// wholeSource reports whether what a request asks for as _source is all of it. Some clients always send a filter that lets everything
// through.
func wholeSource(v gjson.Result) bool {
	f, ok := respond.BodySourceFilter(v)
	return ok && f.Whole()
}
