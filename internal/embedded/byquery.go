package embedded

import "fmt"

// byQuery is what _delete_by_query and _update_by_query did.
type byQuery struct {
	total, changed, conflicts int
	failure                   *Error
}

func (c *call) deleteByQuery() *Error { return c.byQuery(actDelete) }

func (c *call) updateByQuery() *Error { return c.byQuery(actIndex) }

func (c *call) byQuery(act action) *Error {
	start := c.clock()
	s := search{query: matchAll}
	limit, proceed := int64(-1), c.params.get("conflicts") == "proceed"
	asked := c.params.get("q") != ""
	err := c.eachMember(func(kid *node) (err *Error) {
		switch kid.name {
		case "query":
			asked = true
			s.query, err = parseQueryDSL(kid, c.clock())
		case "conflicts":
			proceed = kid.text() == "proceed"
		case "max_docs", "size":
			limit, err = parseNumber(kid.name, kid.text(), 64)
		case "script":
			err = errNoScripts(kid)
		default:
			err = badRequest("parsing_exception", "request does not support [%s]", kid.name)
		}
		return err
	})
	if err != nil {
		return err
	}
	if act == actDelete && !asked {
		return invalid("query is missing")
	}
	if err := s.lucene(c.params.get("q")); err != nil {
		return err
	}
	limit = c.long("max_docs", limit)
	if c.bad != nil {
		return c.bad
	}
	if limit == 0 || limit < -1 {
		return invalid("maxDocs should be greater than 0 if the request is limited to some number of documents or -1 if it isn't but it was [%d]", limit)
	}
	_, hits, err := c.collect(&s)
	if err != nil {
		return err
	}
	if limit >= 0 && int64(len(hits)) > limit {
		hits = hits[:limit]
	}
	done := c.writeHits(hits, act, proceed)
	c.appendByQuery(done, act, c.clock().Sub(start).Milliseconds())
	return nil
}

// writeHits deletes every hit, or writes it again, unless the hit has changed since the search.
func (c *call) writeHits(hits []*hit, act action, proceed bool) byQuery {
	done := byQuery{total: len(hits)}
	for _, h := range hits {
		w := newWrite(act, h.rev.id)
		w.routing, w.source, w.full = h.rev.routing, h.rev.source, h.rev.full
		w.ifSeqNo, w.ifTerm = h.rev.seqNo, primaryTerm
		_, err := h.x.shard.apply(h.x, &w)
		switch {
		case err == nil:
			done.changed++
		case proceed:
			done.conflicts++
		default:
			done.conflicts++
			done.failure = err
			return done
		}
	}
	return done
}

func (c *call) appendByQuery(d byQuery, act action, took int64) {
	dst := fmt.Appendf(c.out, `{"took":%d,"timed_out":false,"total":%d,`, took, d.total)
	if act == actDelete {
		dst = fmt.Appendf(dst, `"deleted":%d`, d.changed)
	} else {
		dst = fmt.Appendf(dst, `"updated":%d,"deleted":0`, d.changed)
	}
	dst = fmt.Appendf(dst, `,"batches":%d,"version_conflicts":%d,"noops":0,"retries":{"bulk":0,"search":0},"throttled_millis":0,`+
		`"requests_per_second":-1.0,"throttled_until_millis":0,"failures":[`, (d.total+999)/1000, d.conflicts)
	if d.failure != nil {
		c.resp.Status = d.failure.Status
		dst = appendString(append(dst, `{"index":`...), d.failure.index.name)
		dst = append(d.failure.appendItem(append(dst, `,"cause":`...)), `,"status":409}`...)
	}
	c.out = append(dst, ']', '}')
}
