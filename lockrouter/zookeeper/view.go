package zookeeper

import (
	"encoding/json"
	"slices"
	"strings"

	"optimist/internal/uri"
)

// top is what a lock's own node says. Every grant, renewal and release writes it under its version: so only one of two has its way.
type top struct {
	Lock   string  `json:"lock"`
	Last   int64   `json:"last"` // the last token
	Holder *holder `json:"holder,omitempty"`
	Freed  []int64 `json:"freed,omitempty"` // tokens that were released last
}

// holder is who has, or waits for, a lock. It stands on the node of the request, too.
type holder struct {
	Node  string `json:"node,omitempty"` // the name of its node. Without that node nobody has the lock
	Owner string `json:"owner"`
	Note  string `json:"note"`
	Token int64  `json:"token,omitempty"`
	Since int64  `json:"since,omitempty"` // in ms, by the clock of the proxy, as Until
	Until int64  `json:"until,omitempty"`
	TTL   int64  `json:"ttl,omitempty"` // in ms
}

const mostFreed = 16

func (t *top) freed(token int64) {
	t.Freed = append(slices.Clone(t.Freed), token)
	t.Freed = t.Freed[max(0, len(t.Freed)-mostFreed):]
}

func (t *top) wasFreed(token int64) bool { return slices.Contains(t.Freed, token) }

func (t *top) bytes() []byte    { return encode(t) }
func (h *holder) bytes() []byte { return encode(h) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("{}") // only strings and numbers are ever in it
	}
	return b
}

// view is a lock as it was a moment ago.
type view struct {
	parent  string
	top     top
	version int32    // of the lock's node; -1: there is none
	zxid    int64    // the last one that is known of it
	queue   []string // the nodes that wait, in their order
	holds   bool     // the holder's node is there
}

// holder is who has the lock, or nil.
func (v *view) holder() *holder {
	if v.holds {
		return v.top.Holder
	}
	return nil
}

// find is the node whose name begins so, also if it holds the lock; empty if there is none.
func (v *view) find(begin string) string {
	if h := v.holder(); h != nil && strings.HasPrefix(h.Node, begin) {
		return h.Node
	}
	if i := v.index(begin); i >= 0 {
		return v.queue[i]
	}
	return ""
}

func (v *view) index(begin string) int {
	return slices.IndexFunc(v.queue, func(name string) bool { return strings.HasPrefix(name, begin) })
}

// ahead are the waiting nodes before the node whose name begins so. If there is no such node, they are those before a node of its class
// that comes now.
func (v *view) ahead(begin string) []string {
	if i := v.index(begin); i >= 0 {
		return v.queue[:i]
	}
	class, _, _ := strings.Cut(begin, "-")
	i := slices.IndexFunc(v.queue, func(name string) bool { c, _, _ := parse(name); return c > class })
	if i < 0 {
		i = len(v.queue)
	}
	return v.queue[:i]
}

// before is the node right before the one whose name begins so: the holder's is before the first. Empty: it is its turn.
func (v *view) before(begin string) string {
	if a := v.ahead(begin); len(a) > 0 {
		return a[len(a)-1]
	}
	if h := v.holder(); h != nil {
		return h.Node
	}
	return ""
}

// parse takes a node's name apart. Sequences have as many digits each that they are in the order of texts.
func parse(name string) (class, seq string, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return "", "", false
	}
	return parts[0], parts[2], true
}

// nodeName is the name of a lock's node.
func nodeName(id string) string { return string(uri.AppendSegment(nil, id)) }
