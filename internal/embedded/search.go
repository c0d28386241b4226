package embedded

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxWindow is the engines' default of index.max_result_window.
const maxWindow = 10000

// search is a search request.
type search struct {
	query      query
	from, size int64
	sort       []sortKey
	filter     *sourceFilter
	version    bool
	seqNo      bool
	noID       bool
	total      int64 // hits are counted exactly up to this number; -1: they aren't counted
	intTotal   bool
}

func (c *call) search() *Error {
	start := c.clock()
	s := search{query: matchAll, size: 10, total: maxWindow}
	if err := c.searchParams(&s); err != nil {
		return err
	}
	if err := c.searchBody(&s); err != nil {
		return err
	}
	if s.from < 0 {
		return illegalArgument("[from] parameter cannot be negative but was [%d]", s.from)
	}
	if s.size < 0 {
		return illegalArgument("[size] parameter cannot be negative, found [%d]", s.size)
	}
	indices, hits, err := c.collect(&s)
	if err != nil {
		return err
	}
	total := int64(len(hits))
	for i := range s.sort {
		for _, x := range indices {
			if err := s.sort[i].check(x); err != nil {
				return err
			}
		}
	}
	if len(s.sort) > 0 {
		sortHits(hits, s.sort)
	}
	hits = hits[min(s.from, total):min(s.from+s.size, total)]
	score := "1.0"
	if len(hits) == 0 || len(s.sort) > 0 {
		score = "null"
	}
	c.out = fmt.Appendf(c.out, `{"took":%d,"timed_out":false,"_shards":`, c.clock().Sub(start).Milliseconds())
	c.out = s.appendTotal(append(appendShards(c.out, len(indices)), `,"hits":{`...), total)
	c.out = fmt.Appendf(c.out, `"max_score":%s,"hits":[`, score)
	for _, h := range hits {
		c.out = s.appendHit(appendComma(c.out), h)
	}
	c.out = append(c.out, ']', '}', '}')
	return nil
}

func appendShards(dst []byte, n int) []byte {
	return fmt.Appendf(dst, `{"total":%d,"successful":%d,"skipped":0,"failed":0}`, n, n)
}

// collect finds the documents that the request's indices and query select.
func (c *call) collect(s *search) ([]*index, []*hit, *Error) {
	indices, err := c.found()
	if err != nil {
		return nil, nil, err
	}
	for _, x := range indices {
		limit := int64(maxWindow)
		if v, ok := x.settings.Load().get("index.max_result_window"); ok {
			limit, _ = strconv.ParseInt(v, 10, 64)
		}
		if s.from+s.size > limit {
			return nil, nil, shardFailure(x, illegalArgument("Result window is too large, from + size must be less than or equal to: [%d] but was [%d]. "+
				"See the scroll api for a more efficient way to request large data sets. This limit can be set by changing the "+
				"[index.max_result_window] index level setting.", limit, s.from+s.size))
		}
	}
	var hits []*hit
	for _, x := range indices {
		for _, r := range x.shard.all() {
			if h := (&hit{x: x, rev: r}); s.query(h) {
				hits = append(hits, h)
			}
		}
	}
	return indices, hits, nil
}

// shardFailure is how a search reports that every shard failed.
func shardFailure(x *index, cause *Error) *Error {
	e := badRequest("search_phase_execution_exception", "all shards failed")
	e.root, e.failed = cause, x
	return e
}

func (c *call) searchParams(s *search) *Error {
	s.from, s.size = c.integer("from", s.from), c.integer("size", s.size)
	s.version, s.seqNo = c.flag("version", false), c.flag("seq_no_primary_term", false)
	s.intTotal = c.flag("rest_total_hits_as_int", false)
	s.filter = c.sourceFilter()
	if c.bad != nil {
		return c.bad
	}
	s.noID = c.params.get("stored_fields") == "_none_"
	if _, ok := c.params.lookup("scroll"); ok {
		return unsupported("scrolls")
	}
	if v, ok := c.params.lookup("track_total_hits"); ok {
		if err := s.track(v); err != nil {
			return err
		}
	}
	if err := s.lucene(c.params.get("q")); err != nil {
		return err
	}
	for _, item := range c.params.list("sort") {
		name, order, _ := strings.Cut(item, ":")
		s.sort = append(s.sort, sortKey{field: name, descending: order == "desc" || order == "" && name == "_score"})
	}
	return nil
}

func (s *search) track(v string) *Error {
	switch v {
	case "true", "":
		s.total = math.MaxInt64
	case "false":
		s.total = -1
	default:
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return illegalArgument("Failed to parse value [%s] as only [true] or [false] are allowed.", v)
		}
		s.total = n
	}
	return nil
}

// lucene understands the simplest of the query-string language: *, *:*, field:value.
func (s *search) lucene(q string) *Error {
	if q == "" || q == "*" || q == "*:*" {
		return nil
	}
	name, value, ok := strings.Cut(q, ":")
	if !ok || strings.ContainsAny(q, ` ()[]{}"\/~^*?&|+!<>`) {
		return unsupported("queries in q= other than * and field:value")
	}
	s.query = matchQuery(name, textNode(value), false)
	return nil
}

func (c *call) searchBody(s *search) *Error {
	withSource := false
	return c.eachMember(func(kid *node) (err *Error) {
		switch kid.name {
		case "query":
			s.query, err = parseQueryDSL(kid, c.clock())
		case "from":
			s.from, err = parseNumber("from", kid.text(), 32)
		case "size":
			s.size, err = parseNumber("size", kid.text(), 32)
		case "sort":
			s.sort, err = parseSort(kid)
		case "_source":
			s.filter, withSource = filterOf(kid), true
		case "version": // the parameter of that name comes before the body
			s.version = c.flag(kid.name, kid.isTrue())
		case "seq_no_primary_term":
			s.seqNo = c.flag(kid.name, kid.isTrue())
		case "track_total_hits":
			err = s.track(kid.text())
		case "stored_fields":
			s.noID = kid.text() == "_none_"
			if !withSource {
				s.filter = &sourceFilter{none: true}
			}
		case "timeout", "track_scores", "terminate_after", "stats", "profile", "explain":
		case "aggs", "aggregations", "highlight", "suggest", "collapse", "rescore", "knn", "retriever", "search_after", "slice", "pit", "script_fields",
			"docvalue_fields", "fields", "runtime_mappings", "post_filter", "indices_boost", "min_score", "rank", "ext":
			err = unsupported("searches with [" + kid.name + "]")
		default:
			err = badRequest("parsing_exception", "Unknown key for a %s in [%s].", tokenName(kid.raw), kid.name)
		}
		return err
	})
}

func (s *search) appendTotal(dst []byte, total int64) []byte {
	switch {
	case s.total < 0:
		return dst
	case s.intTotal:
		return fmt.Appendf(dst, `"total":%d,`, total)
	case total > s.total:
		return fmt.Appendf(dst, `"total":{"value":%d,"relation":"gte"},`, s.total)
	}
	return fmt.Appendf(dst, `"total":{"value":%d,"relation":"eq"},`, total)
}

func (s *search) appendHit(dst []byte, h *hit) []byte {
	dst = appendString(append(dst, `{"_index":`...), h.x.name)
	if !s.noID {
		dst = appendString(append(dst, `,"_id":`...), h.rev.id)
	}
	if s.version {
		dst = appendVersion(dst, h.rev)
	}
	if s.seqNo {
		dst = appendSeqNo(dst, h.rev)
	}
	if len(s.sort) > 0 {
		dst = append(dst, `,"_score":null`...)
	} else {
		dst = append(dst, `,"_score":1.0`...)
	}
	if h.rev.routing != "" && !s.noID {
		dst = appendString(append(dst, `,"_routing":`...), h.rev.routing)
	}
	if !s.filter.hidden() && h.rev.source != nil {
		dst = s.filter.append(append(dst, `,"_source":`...), h.rev.source)
	}
	if len(s.sort) > 0 {
		dst = append(dst, `,"sort":[`...)
		for i := range s.sort {
			dst = h.sort[i].append(appendComma(dst), &s.sort[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func (c *call) count() *Error {
	s := search{query: matchAll}
	if err := s.lucene(c.params.get("q")); err != nil {
		return err
	}
	err := c.eachMember(func(kid *node) (err *Error) {
		if kid.name != "query" {
			return badRequest("parsing_exception", "request does not support [%s]", kid.name)
		}
		s.query, err = parseQueryDSL(kid, c.clock())
		return err
	})
	if err != nil {
		return err
	}
	indices, hits, err := c.collect(&s)
	if err != nil {
		return err
	}
	c.out = append(appendShards(fmt.Appendf(c.out, `{"count":%d,"_shards":`, len(hits)), len(indices)), '}')
	return nil
}
