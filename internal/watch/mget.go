package watch

import (
	"bytes"
	"net/http"
	"sync"

	"optimist/internal/api"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/proxy"
)

// mget looks at a multi-get. A multi-get for parts of documents is left alone. Where a rule may stamp some of them, the answer is
// collected. Which documents they are is read when the engine has answered.
func (rd *Reading) mget() bool {
	op, client := rd.r.Op(), rd.r.Client()
	routing, ok := rd.r.Routing()
	stamps := rd.rules.Stamps() && rd.w.Rules.Mode() == rule.Guard && rd.r.Rewritable()
	watches := rd.rules.Takes(api.Mget) && client.Known
	if !ok || !stamps && !watches || Partial(op.Query) || client.Signed || client.Bound {
		return false
	}
	q := requestBodyOf(rd.r, rd.w.MaxBody)
	if stamps = stamps && q.readable && !rd.stampsNone(&q); !stamps {
		if watches = watches && q.readable; watches {
			rd.forwardCopied(func(answer []byte) { rd.mgetAnswer(&q, routing, answer, false) })
		}
		return watches
	}
	rd.begin(true)
	res, err := rd.askForAll(op.Query)
	if err != nil {
		rd.failed(err)
		return true
	}
	defer res.Release()
	if res.Status == http.StatusOK {
		rd.mgetAnswer(&q, routing, res.Payload, true)
	}
	rd.answer(res, rd.stamps.into(res.Payload))
	return true
}

// stampsNone reports whether it can be seen at once that no document is asked for that a rule stamps: all of them are of an index
// in the path.
func (rd *Reading) stampsNone(q *requestBody) bool {
	body, known := q.early()
	return known && rd.r.Index() != "" && !bytes.Contains(body, []byte("_index")) && bytes.IndexByte(body, '\\') < 0 &&
		rd.stamper() == nil
}

// forwardCopied forwards the read, and calls whole with an answer that is a success and can be read.
func (rd *Reading) forwardCopied(whole func(answer []byte)) {
	rd.begin(rd.r.Op().Kind == api.Mget)
	rd.copy.Whole = func() {
		switch answer, ok := rd.copy.Body(); {
		case rd.copy.Status != http.StatusOK:
		case ok:
			whole(answer)
		default:
			rd.showUnknown()
		}
	}
	rd.r.Pass(proxy.ForwardOptions{OnHead: rd.copy.Head, Copy: rd.copy.Copy, Last: rd.copy.Last})
}

// mgetAnswer remembers, and stamps if it may, the documents in the answer to a multi-get.
func (rd *Reading) mgetAnswer(q *requestBody, routing string, answer []byte, stamps bool) {
	text, ok := q.text(rd.w.MaxBody)
	documents, few := several(rd.r.Op(), routing, text, answer)
	rest := sources(answer)
	defer func() { rd.showRest(rest) }()
	if !ok || !few {
		rd.stamps.skip(outcome.ReasonTooLarge)
		return
	}
	var f rulesOf
	pathIsIndex := sync.OnceValue(rd.pathIsIndex)
	for i := range documents {
		d := &documents[i]
		if d.elsewhere && !pathIsIndex() {
			continue
		}
		f.find(rd, d.name, d.Index)
		if stamps {
			d.stamper = f.stamper
		}
		d.watches = f.watches
		rd.remember(d)
		rd.stamp(d)
		rest -= d.sources()
	}
}

// pathIsIndex reports whether the path names an index. If it doesn't, it may be the prefix by which a gateway tells tenants apart. Then
// nobody knows which document is meant by another index's name. All of the answer must be here: see asker.
func (rd *Reading) pathIsIndex() bool {
	ix, known := rd.learn(rd.r.Index())
	return known && ix.Exists()
}
