package intercept

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/watch"
	"optimist/internal/wire"
	"optimist/proxy"
)

// bulk deals with a bulk. Each of its items may be of an index that a rule takes, whatever its path names: the path only stands for the
// items that name none. The answer says what was done: whoever counts on a rule must not have to guess.
func (i *Interceptor) bulk(r *request) bool {
	t := i.guarding()
	if t.rules == nil && r.journal == nil {
		return i.pass(r, nil)
	}
	if r.Index() != "" {
		if of, err := i.takersOf(r, r.Index()); err == nil && of.rules == nil && r.journal == nil && i.isOfItsPath(r) {
			return i.pass(r, nil)
		} else if of.rules != nil {
			t = of
		}
	}
	left := asIs{reason: i.bulkReason(r)}
	switch left.reason {
	case "":
		var done bool
		if done, left = i.guardItems(r); done {
			return true
		}
	case outcome.ReasonFormat:
		left.of = i.namesIn(r)
	}
	switch {
	case r.journal != nil:
		fail(r, cantUndo("this bulk can't be read, or is of no index with a rule"))
		return true
	case left.untaken:
		return i.pass(r, nil)
	case left.unread():
		if i.barredBulk(r, left.reason) {
			return true
		}
		left.skipped = t.spokesman()
	}
	return i.passBulk(r, []wire.Field{i.passedField(r, left.skipped, left.reason)}, left.of)
}

// namesIn names the items of a bulk whose answer may come in a form that optimist can't read.
func (i *Interceptor) namesIn(r *request) []bulk.Name {
	if r.Op().Stream || !wire.NDJSONBody(r.Head().Fields) {
		return nil
	}
	body, _, err := r.Plain(i.MaxBody)
	if err != nil {
		return nil
	}
	d, _ := i.defaults(r)
	names, _ := bulk.Names(body, d)
	return names
}

// asIs is a bulk that is to be forwarded as it is.
type asIs struct {
	reason  string      // why optimist deals with none of its items; empty: there is nothing to do for them
	untaken bool        // no rule takes any of its items: then nothing is said of it
	of      []bulk.Name // all items' names, as far as they are known and somebody may need them
	// skipped is a rule whose transform isn't applied to an item; nil: there is none, or nobody has read the items.
	skipped *rule.Rule
}

// unread reports whether nobody has read the items, for that reason.
func (a *asIs) unread() bool { return a.reason != "" && a.reason != outcome.ReasonBulk }

// isOfItsPath reports whether it can be seen at once that no item of the bulk names an index. That costs a look for a word: to read the
// items takes many times as long. It is false where that can't be told: items may hold the word in a document, or spell it with escapes,
// and what isn't JSON in UTF-8 may be read otherwise by the engine, which takes C1 9F for an underscore. Then the items are read.
func (i *Interceptor) isOfItsPath(r *request) bool {
	h := r.Head()
	if r.Op().Fragment || r.Op().Stream || !wire.NDJSONBody(h.Fields) || h.Get("content-encoding") != nil && !r.Gzipped() {
		return false
	}
	body, _, err := r.Plain(i.MaxBody)
	return err == nil && !bytes.Contains(body, []byte("_index")) && !bytes.Contains(body, []byte(`\u00`)) && bytes.IndexByte(body, 0) < 0 &&
		utf8.Valid(body)
}

// bulkReason is why the items of a bulk can't be guarded, as far as its head tells.
func (i *Interceptor) bulkReason(r *request) string {
	_, otherForm := uri.Param(r.Op().Query, "format")
	if otherForm || r.Op().Stream || !wire.NDJSONBody(r.Head().Fields) || !wire.AcceptsJSON(r.Head().Fields) {
		return cmp.Or(r.whyUntouchable(), outcome.ReasonFormat)
	}
	return r.whyUntouchable()
}

// guardItems guards the items of a bulk. done is false where there is nothing to guard, or where it can't be: then the bulk is still to be
// forwarded.
func (i *Interceptor) guardItems(r *request) (done bool, left asIs) {
	began := time.Now()
	body, _, err := r.Plain(i.MaxBody)
	taken := budget.Of(r.Context())
	if err == nil { // twice: in the requests that the items go in, and in what is made of the items themselves
		err = taken.Take(2*int64(len(body)) + int64(mostItems(body))*roomOfItem)
	}
	switch {
	case errors.Is(err, proxy.ErrTooLarge), errors.Is(err, budget.ErrTooMuch):
		return i.guardStream(r)
	case err != nil:
		r.Fail(err)
		return true, left
	}
	d, reason := i.defaults(r)
	if reason != "" {
		names, _ := bulk.Names(body, d)
		return false, asIs{reason: reason, of: names}
	}
	b := i.newItems(r)
	b.findJournals(tokensIn(body, d))
	b.takeRoom(min(lookedAt, likelyItems(body)))
	found, left, err := b.look(bulk.NewReader(body, d))
	if err == nil && found {
		b.all = slices.Grow(b.all, likelyItems(body))
		err = b.read(bulk.NewReader(body, d), math.MaxInt)
	}
	switch {
	case err != nil:
		b.leaveRoom()
		names, _ := bulk.Names(body, d)
		return false, asIs{reason: outcome.ReasonFormat, of: names} // the engine says what is wrong with it
	case !found:
		b.leaveRoom()
		return false, left
	}
	b.choose()
	switch err := taken.Take(int64(b.guarded()) * roomOfGuarded); {
	case errors.Is(err, budget.ErrTooMuch):
		return i.guardStream(r)
	case err != nil:
		r.Fail(err)
		return true, left
	}
	b.run()
	b.answer(began)
	b.leaveRoom()
	return true, left
}

// tokensIn are the tokens that the items of a bulk name.
func tokensIn(body []byte, d bulk.Defaults) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !mayNameTokens(body) {
			return
		}
		reader := bulk.NewReader(body, d)
		for {
			it, ok, err := reader.Next()
			if err != nil || !ok || it.Token != "" && !yield(it.Token) {
				return
			}
		}
	}
}

// How many bytes an item takes beyond those of its text, and one that is guarded besides: its write, and the goroutine that waits for it.
const (
	roomOfItem    = 1 << 10
	roomOfGuarded = 12 << 10
)

// passBulk is pass for a bulk that a rule takes. of are its items, as far as they are known.
func (i *Interceptor) passBulk(r *request, fields []wire.Field, of []bulk.Name) bool {
	s, err := i.withoutOurs(r)
	if err != nil {
		r.Fail(err)
		return true
	}
	var capture *watch.Capture
	if r.Client().Known {
		epoch := i.Sessions.Epoch()
		capture = watch.NewCapture(budget.Of(r.Context()), bulkLimit)
		capture.Whole = func() {
			if capture.Status/100 != 4 { // else the engine has refused all of it
				i.noteBulk(r, capture, of, epoch)
			}
		}
	}
	return i.forward(r, &s, fields, capture)
}

// bulkLimit is the size of a bulk's answer, in bytes, up to which it is looked at: some 20,000 items.
const bulkLimit = 4 << 20

// noting ends a session's knowledge of the documents that its own forwarded writes have changed.
type noting struct {
	i     *Interceptor
	r     *request
	epoch session.Epoch // from before the request was sent
	ask   func(index string)
}

// noteBulk is for a bulk. of are the documents that the request names. Only the request has their routing, and with another routing it is
// another document.
func (i *Interceptor) noteBulk(r *request, capture *watch.Capture, of []bulk.Name, epoch session.Epoch) {
	sess := r.Client().Session
	usual, _ := r.Routing()
	asked := map[string]bool{}
	note := noting{i, r, epoch, func(index string) {
		if !asked[index] {
			asked[index] = true
			r.FreeUpstream()
			_, _ = i.catalog.Resolve(r.Context(), r.Asker(), index, 0)
		}
	}}
	answer, readable := capture.Body()
	n, named := 0, readable
	for verb, it := range es.Results(answer) {
		if named = named && it.Named(); !named {
			break
		}
		called := bulk.Name{Index: r.Index(), Routing: usual}
		if n++; n <= len(of) {
			called = of[n-1]
		}
		note.item(string(verb), &it, called)
	}
	if named && (n >= len(of) || n == 0 && es.Member(answer, "error") != nil) {
		return // all are known, or nothing was done
	}
	var ix catalog.Index
	var err error
	for k := range of { // the answer was to show less, so that nobody can tell what became of which
		if k == 0 || of[k].Index != of[k-1].Index {
			r.FreeUpstream() // the engine may be asked
			ix, err = i.catalog.Resolve(r.Context(), r.Asker(), of[k].Index, 0)
		}
		if err == nil && of[k].ID != "" {
			i.Sessions.ReadUnknown(sess, ix.Ref(of[k].Routing, of[k].ID))
		}
	}
}

// item ends what the request's session knew of the document of an item, which the request calls so.
func (n *noting) item(action string, it *es.Item, called bulk.Name) {
	switch result := string(it.Result); {
	case result == "", result == "noop":
		return
	case result == "created" && called.ID == "" && it.Version == 1: // nobody knew of it: the engine has made its id
		return
	}
	catalog, realm := n.i.catalog, n.r.Client().Realm
	ref := it.Ref(doc.Ref{Index: called.Index, ID: called.ID, Routing: called.Routing})
	catalog.Shown(realm, called.Index, string(it.Index))
	home, maybe := catalog.Home(realm, called.Index, ref, "")
	if maybe != "" { // nobody knows yet whether its routing leads to another document
		n.ask(called.Index)
		home, maybe = catalog.Home(realm, called.Index, ref, "")
	}
	written := *it
	if n.r.Index() != "" && called.Index != n.r.Index() { // it may be another tenant's document: see bulk.Item.Elsewhere
		written.Revision = doc.Revision{}
	}
	if maybe != "" { // nor does the engine say so: then it is one of two
		n.i.Sessions.ReadUnknown(n.r.Client().Session, home)
		home.Routing = maybe
	}
	n.written(action, &written, home)
}

func (n *noting) written(action string, it *es.Item, ref doc.Ref) {
	sessions, sess, result := n.i.Sessions, n.r.Client().Session, string(it.Result)
	if result == "deleted" || result == "not_found" {
		sessions.ReadUnknown(sess, ref) // nor is what it read of it a base for what comes after
		return
	}
	var left doc.Revision
	if it.Numbered {
		left = it.Revision
	}
	whole := action != "update" || result == "created" // an update that creates the document has sent all of it
	sessions.WroteForwarded(sess, ref, left, whole, n.epoch)
}
