package watch

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/jsontext"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// mayWatch reports whether the search is to be watched: its answer can be, and a rule has all such searches watched, or those of writers,
// of whom its client may be one.
func (rd *Reading) mayWatch(f *searchPlan) bool {
	client := rd.r.Client()
	if f.size == 0 || !client.Known || rd.r.Head().Minor == 0 || !wire.AcceptsJSON(rd.r.Fields()) {
		return false
	}
	switch index, whose := rd.whoseAreWatched(f); whose {
	case allSearches:
		return true
	case noSearches:
		return false
	default:
		// A large page is never told apart from an export: it is left alone, but known to have shown documents. A client that names its
		// session wants it to be exact.
		return client.Session.IsNamed() || rd.w.Sessions.WatchesSearches(client.Session, index, !f.isLarge())
	}
}

// watchedSearches says whose searches are watched.
type watchedSearches uint8

const (
	noSearches watchedSearches = iota
	writersSearches
	allSearches
)

// whoseAreWatched says which clients' searches of the searched indices are watched, as far as that is known. index is the only index that
// the search names, or "": the index isn't known, or there are several.
func (rd *Reading) whoseAreWatched(f *searchPlan) (index string, whose watchedSearches) {
	a := &f.target
	switch {
	case a.Index == "" && rd.rules.AllSearches(): // it may find documents of that rule; so may a search of a point in time
		return "", allSearches
	case !api.OneIndex(a.Index):
		return "", writersSearches
	}
	if ix, known := rd.w.Catalog.Cached(rd.r.Client().Realm, a.Index); known {
		a.Concrete, a.Stream, index = ix.Name, ix.DataStream, ix.Name
		if !rd.w.Catalog.Guardable(rd.r.Asker(), ix) {
			return index, noSearches
		}
	}
	ru := rd.rules.MatchRequest(a)
	bases := rd.w.Rules.Effective(ru) != rule.Off && ru.Session
	switch {
	case bases && ru.AllSearches:
		return index, allSearches
	case bases, index == "" && rd.rules.Elsewhere(a, ru): // without a known index, the name may be an alias
		return index, writersSearches
	}
	f.baseless = ru != nil && (index == "" || index == a.Index) // of what stands behind an alias, another rule may say so
	return index, noSearches
}

// session is the client's session, with whether the read shows many documents.
func (rd *Reading) session() session.Session {
	if rd.many {
		return rd.client.Session.ShowingMany()
	}
	return rd.client.Session
}

// smallPage is how many hits a search of an inferred session may ask for to be watched without a rule that says so. The cost of the numbers
// grows with the hits, and faster than the rest of a search.
const smallPage = 20

// watchHits has the search find the numbers of its hits, and remembers them as they pass.
func (rd *Reading) watchHits(f *searchPlan) {
	o := proxy.ForwardOptions{Target: append(append(append([]byte(nil), rd.r.Op().Path...), '?'), f.more.query(f.query)...)}
	name := ""
	if api.OneIndex(f.target.Index) {
		name = f.target.Index
	}
	_, scrolls := uri.Param(rd.r.Op().Query, "scroll")
	rd.settleFirst(f.target.Index)
	rd.many = f.showsMany()
	rd.forwardHits(o, name, f.more, f.hidden, scrolls)
}

// reveal reports whether the search's filter_path lets all of _source through. The engine is then asked for the members that say what the
// hits are, too.
func (f *searchPlan) reveal() bool {
	if _, filtered := uri.Param(f.query, "filter_path"); !filtered {
		return false
	}
	query, hidden := inHits.revealed(f.query)
	if query == nil {
		return false
	}
	f.query, f.hidden = query, hidden
	return true
}

// findsWhole reports whether each hit has a _source, if the engine is asked for hidden members. A filter_path leaves out a hit of which it
// shows nothing, and the hidden members would keep it.
func (rd *Reading) findsWhole(f *searchPlan, text []byte) bool {
	switch {
	case len(f.hidden) == 0:
		return true
	case gjson.GetBytes(text, "script_fields").Exists(): // beside which _source is only shown on demand
		return false
	}
	rd.settleFirst(f.target.Index)
	ix, known := rd.w.Catalog.Cached(rd.r.Client().Realm, f.target.Index)
	return known && ix.Exists() && !ix.Shared && !ix.Partial
}

// forwardHits forwards a search that finds the numbers of its hits, and remembers them as they pass. The added numbers and the hidden
// members are taken out again; a scroll's next page knows of the numbers.
func (rd *Reading) forwardHits(o proxy.ForwardOptions, name string, more added, hidden []string, scrolls bool) {
	rd.begin(false)
	var rules rulesOf
	looked, left := false, false
	take := filter{room: rd.copy.room, lost: rd.showUnknown, hit: func(hit []byte) []byte {
		if !looked {
			looked, left = true, rd.clientLeft()
		}
		if !left {
			rd.find(&rules, name, hit)
		}
		return withoutMembers(more.without(hit), hidden)
	}}
	if rd.named() {
		var s seeker
		take.rest = func(p []byte) { rd.showRest(s.count(p)) }
	}
	if scrolls {
		take.head = func(head []byte) {
			if id := gjson.GetBytes(head, "_scroll_id"); id.Str != "" { // of a JSON that isn't whole, which gjson takes
				rd.w.scrolls.add(rd.client.Session.Network(), id.Str, more)
			}
		}
	}
	o.Drop = []string{"accept-encoding"} // hits are read, even where nothing is taken out of them
	usable := false
	o.OnHead = func(h *wire.Head, _ []byte) []wire.Field {
		rd.copy.Head(h, nil)
		if usable = rd.copy.usable && !rd.copy.gzip && h.Status == http.StatusOK; !usable && h.Status == http.StatusOK {
			rd.showUnknown()
		}
		return nil
	}
	o.Change = func(p []byte, last bool) []byte {
		if usable {
			p = take.change(p, last)
		}
		return p
	}
	rd.r.Pass(o)
}

// find remembers a hit of a search that finds the numbers of its hits.
func (rd *Reading) find(rules *rulesOf, name string, hit []byte) {
	d := readHit(hit, hit, name)
	if !d.whole {
		rd.showRest(sources(hit))
		return
	}
	rules.find(rd, name, d.Index)
	if d.Numbered && rd.remembers(rules.watches) {
		rd.lookAtName(d)
		rd.w.Sessions.Found(rd.session(), rd.home(d), d.Revision, rd.epoch)
	} else {
		rd.show(d)
	}
	if rd.named() {
		rd.showRest(sources(hit) - d.sources())
	}
}

// scroll remembers the hits of a scroll's later page. Its first request has decided what they are like.
func (rd *Reading) scroll() bool {
	op := rd.r.Op()
	others := uri.Without(nil, op.Query, "filter_path") // which may let the numbers through that nobody has asked for
	if asksForForm(others) || !rd.r.Client().Known || !rd.r.Rewritable() {
		return false
	}
	raw, _ := uri.Param(op.Query, "scroll_id")
	id, err := uri.DecodeValue(nil, raw)
	if len(id) == 0 && err == nil {
		if last := op.Path[bytes.LastIndexByte(op.Path, '/')+1:]; string(last) != "scroll" {
			id, err = uri.Decode(nil, last)
		}
	}
	if len(id) == 0 && err == nil {
		q := requestBodyOf(rd.r, rd.w.MaxBody)
		text, known := q.early()
		if !known {
			return false
		}
		id = []byte(gjson.GetBytes(text, "scroll_id").String())
	}
	more, known := rd.w.scrolls.get(id)
	if err != nil || !known {
		return false
	}
	rd.many = true
	rd.forwardHits(proxy.ForwardOptions{}, "", more, nil, true)
	return true
}

// query is a search's query with what is added. What the client says of that itself is left out: it says no.
func (a added) query(query []byte) []byte {
	query = append([]byte(nil), query...)
	for _, part := range [...]struct {
		wanted bool
		name   string
	}{{a.numbers, "seq_no_primary_term"}, {a.version, "version"}} {
		if !part.wanted {
			continue
		}
		if _, given := uri.Param(query, part.name); given {
			query = uri.Without(nil, query, part.name)
		}
		if len(query) > 0 {
			query = append(query, '&')
		}
		query = append(append(query, part.name...), "=true"...)
	}
	return query
}

// without takes what was added out of a hit, in place.
func (a added) without(hit []byte) []byte {
	names := [...]string{"_seq_no", "_primary_term", "_version"}
	switch {
	case !a.numbers && !a.version:
		return hit
	case !a.numbers:
		return withoutMembers(hit, names[2:])
	case !a.version:
		return withoutMembers(hit, names[:2])
	}
	return withoutMembers(hit, names[:])
}

// withoutMembers takes the members of these names out of a JSON object, in place, with the white space before them, every other byte kept.
func withoutMembers(object []byte, names []string) []byte {
	out, from, left := object[:0], 0, len(names)
	for s := jsontext.Scan(object); left > 0 && s.Next(); {
		name := s.Name()
		if !slices.ContainsFunc(names, func(n string) bool { return string(name) == n }) {
			continue
		}
		start, end := s.Key, s.End
		for start > 0 && jsontext.IsSpace(object[start-1]) {
			start--
		}
		out = append(out, object[from:max(start, from)]...)
		if s.Comma >= 0 {
			end = s.Comma + 1
		} else if n := len(out); n > 0 && out[n-1] == ',' {
			out = out[:n-1]
		}
		from = end
		left--
	}
	return append(out, object[from:]...)
}
