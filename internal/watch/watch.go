// Package watch looks at the answers to reads. It remembers which revisions each client has seen, because these can become the bases of the
// client's writes. Where a rule asks for it, it stamps documents.
//
// It changes nothing of an answer except for an ETag and stamps. Answers are streamed. Two kinds are collected first: those that
// may get stamps, and those that optimist asks for in another form than the client did. A read is remembered before the client
// has all of the answer.
package watch

import (
	"optimist/internal/api"
	"optimist/internal/client"
)

// Serve looks at a request that writes nothing, and reports false where it is to be forwarded as it is.
func (rd *Reading) Serve(w *Watcher, r *client.Request) bool {
	if !r.Op().Kind.Read() && !r.Op().MayShow(r.Head().Method) {
		return false
	}
	rd.of(w, r)
	defer rd.end()
	return rd.watched() || rd.unwatched()
}

// watched looks at a read that can be a base. It reports false, and has forwarded nothing, where nothing of it can be. Of a read with a
// fragment it can't be told what it is of.
func (rd *Reading) watched() bool {
	if rd.r.Op().Fragment {
		return false
	}
	switch rd.r.Op().Kind {
	case api.Get, api.Source:
		return rd.get()
	case api.Mget:
		return rd.mget()
	case api.Search:
		return rd.search()
	case api.Scroll:
		return rd.scroll()
	}
	return false
}
