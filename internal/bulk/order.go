package bulk

import (
	"github.com/tidwall/gjson"
)

// readAll gives each write the result in its place. It reports false unless there are as many.
func (r *results) readAll(writes []*parkedWrite) (whole bool) {
	for _, w := range writes {
		if w.res, whole = r.next(w.asIs); !whole {
			return false
		}
	}
	return r.end()
}

// isStray reports whether the result names another document than the write's, or none though the write's has an id.
func (w *parkedWrite) isStray() bool {
	id := w.res.id
	if n := len(id) - 1; w.id == "" || n > 0 && string(id[1:n]) == w.id {
		return false
	}
	return gjson.ParseBytes(id).String() != w.id
}

// inOrder returns the writes in the order of the answer's elements, which have been read in the order of the writes. OpenSearch has them in
// another order if an ingest pipeline refuses or drops some of the items. It also leaves out the id of an update whose upsert a pipeline
// refuses. If a pipeline has given documents other ids, the order stays. ok is false if it can't be made out.
func inOrder(writes []*parkedWrite) (ordered []*parkedWrite, ok bool) {
	from, taken := make([]int, len(writes)), make([]bool, len(writes)) // the element of each write, from 1
	take := func(write, element int) { from[write], taken[element] = element+1, true }
	found := make(map[string][]int, len(writes)) // the elements of each id, in order
	for k, w := range writes {
		switch id := gjson.ParseBytes(w.res.id).String(); {
		case id != "" && id == w.id:
			take(k, k)
		default:
			found[id] = append(found[id], k)
		}
	}
	for k, w := range writes {
		if rest := found[w.id]; from[k] == 0 && w.id != "" && len(rest) > 0 {
			take(k, rest[0])
			found[w.id] = rest[1:]
		}
	}
	for k := range writes { // of all others, it is the one in its place
		if from[k] == 0 && !taken[k] {
			take(k, k)
		}
	}
	var write, element []int // that are left
	for k := range writes {
		if from[k] == 0 {
			write = append(write, k)
		}
		if !taken[k] {
			element = append(element, k)
		}
	}
	if len(write) > 1 {
		return writes, false
	}
	for i, k := range write {
		take(k, element[i])
	}
	ordered = make([]*parkedWrite, len(writes))
	for k, n := range from {
		ordered[n-1] = writes[k]
	}
	return ordered, true
}
