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

// Serve looks at a read, and reports false where it is to be forwarded as it is.
func (rd *Reading) Serve(w *Watcher, r *client.Request) bool {
	rd.w, rd.r, rd.client, rd.rules = w, r, nil, w.Rules.Rules()
	rd.choice, rd.stamps, rd.questions = choice{}, stamps{}, questions{}
	defer rd.end()
	switch r.Op().Kind {
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
