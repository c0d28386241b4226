package session

import (
	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/viewcache"
)

// WatchesSearches reports whether the documents that a search of an inferred session finds may become bases. They may if a client with the
// session's credentials writes to the index, or has first searched it less than Options.MaxAge ago. index is "" for any index. few says
// that the search finds few documents: a search for many isn't watched. If the search isn't watched, the store notes that it has shown the
// session documents that the store doesn't know.
func (s *Store) WatchesSearches(sess Session, index string, few bool) bool {
	now := s.clock()
	ix := s.find(index, sess.Credentials(), now)
	switch {
	case few && ix.IsWriter(sess.Everybody(), now):
		return true
	case s.dryRun:
		return false
	case ix.MayTurnWriter(sess.Everybody(), now) && few:
		return true
	}
	ix.Searched(sess.Bare(), now)
	return false
}

// wrote notes that the session overwrites documents of the index.
func (s *Store) wrote(ix indexstate.Index[Session], sess Session, now int64) {
	ix.Wrote()
	ix.WroteBy(sess.Everybody(), now)
	s.index("", sess.Credentials(), now).WroteBy(sess.Everybody(), now)
}

// Found is Read for a document that a search has found, or another read that may show an older revision than the stored one. A search sees
// the index as it was at its last refresh. If a thread of work has seen a newer revision before, its next write may be made from either.
// Then the newer one only guards that write: see ReadPart. For a named session, Found then returns stale, and notes no read. The
// exception is a thread whose write under such a guard the engine has refused. If it searches again, it writes from what it finds. So Found
// notes a read of that revision, although it is older than the view.
func (s *Store) Found(sess Session, ref doc.Ref, rev doc.Revision, at Epoch) (stale bool) {
	if s.dryRun {
		return false
	}
	if thread, ok := sess.Thread(); ok && s.hasNewer(thread, ref, rev.Numbers) {
		s.ReadPart(thread, ref, doc.Revision{Source: rev.Source})
		s.foundOlder(thread, ref, rev)
		if sess = sess.In(Trace{}); sess.IsNamed() {
			return true
		}
	}
	s.Read(sess, ref, rev, at)
	return false
}

// foundOlder notes the differences between the last revision that a named session has seen and the older one that it has found now. See
// UseUnclear.
func (s *Store) foundOlder(sess Session, ref doc.Ref, older doc.Revision) {
	if !sess.IsNamed() {
		return
	}
	newer, known := s.inHand(sess, ref, older.Numbers)
	if known {
		return
	}
	since := choice.NewSince(newer, older)
	sh, e, _, _ := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	if e != nil {
		e.Since = since
		sh.Settled(e)
	}
}

// inHand is the revision that the session has seen last of the document: the one that it has read, or the document that it has sent. known
// says that the entry has the differences between that revision and the older one already.
func (s *Store) inHand(sess Session, ref doc.Ref, older doc.Numbers) (newest doc.Revision, known bool) {
	sh, e, _, _ := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	switch {
	case e == nil:
		return doc.Revision{}, false
	case len(e.Reads) > 0:
		r := &e.Reads[len(e.Reads)-1]
		newest = doc.Revision{Numbers: r.Numbers, Source: r.Body.Bytes()}
	default:
		newest = doc.Revision{Numbers: e.View.Numbers, Source: e.View.SentBody.Bytes()}
	}
	return newest, e.Since != nil && e.Since.Newer == newest.Numbers && e.Since.Older == older
}

// hasNewer reports whether the session has read or written a newer revision than n. A revision doesn't count if the engine has refused a
// write that it guarded.
func (s *Store) hasNewer(sess Session, ref doc.Ref, n doc.Numbers) bool {
	sh, e, _, _ := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	if e == nil {
		return false
	}
	newer := !e.View.IsRefused() && viewcache.Newer(e.View.Numbers, n)
	for i := range e.Reads {
		r := &e.Reads[i]
		newer = newer || !r.IsRefused() && viewcache.Newer(r.Numbers, n)
	}
	return newer
}
