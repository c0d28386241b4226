package intercept

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/jsontext"
	"optimist/internal/respond"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// changeIndices forwards a change of indices, aliases, settings, mappings, templates or pipelines. If an index may be another one
// afterwards, optimist forgets the index before the client has its answer: the next write must not find the old bases. The request must
// have been sent whole, and the engine must not have refused it: everybody can send a request that is refused.
func (i *Interceptor) changeIndices(r *request) {
	if r.Op().Renumbers {
		i.renumber(r)
		return
	}
	forwardJudged(r, func(status int) {
		if verdictOf(status) != wasRefused {
			i.Writes.IndicesChanged(r.Client().Session.Credentials())
		}
	})
}

// forwardJudged forwards a request and calls judge, once, with the status of its answer before the client has it; 0: there is
// none.
func forwardJudged(r *request, judge func(status int)) {
	defer judged(r, judge)()
	r.Pass(proxy.ForwardOptions{})
}

// judged has judge called once with the status of the answer to a request, before the client has it. Call over when the request is done
// with: it calls judge with 0 if there was no answer.
func judged(r *request, judge func(status int)) (over func()) {
	r.OnStatus = judge
	return func() {
		if r.OnStatus != nil {
			r.OnStatus = nil
			judge(0)
		}
	}
}

// verdict is what an answer's status says of a change.
type verdict uint8

const (
	wasRefused verdict = iota
	mayBeDone
	isDone
)

func verdictOf(status int) verdict {
	switch {
	case status >= 200 && status < 300:
		return isDone
	case status == 0 || status >= 500: // lost, or given up: it may be carried out all the same
		return mayBeDone
	}
	return wasRefused
}

// renumber forwards a change after which an index may be another one, or a name stand for another. Which ones these are the
// engine says: it is asked before the change and after it, as the client.
func (i *Interceptor) renumber(r *request) {
	body, err := r.Body(i.MaxBody)
	large := errors.Is(err, proxy.ErrTooLarge)
	if err != nil && !large {
		r.Fail(err) // not all of the request came
		return
	}
	c := renumbering{i: i, ctx: r.Context(), asker: r.Asker(), streamed: large}
	text, _, err := r.Plain(longestActions)
	c.names.of(r.Op(), string(r.Head().Method), text, err != nil)
	c.before()
	if large {
		forwardJudged(r, c.after)
		return
	}
	if body == nil && r.Head().Body != wire.None {
		body = []byte{}
	}
	// The answer must not be lost when the client leaves: otherwise a client could make its refused change look like one that may have
	// been carried out.
	ctx, cancel := outlasting(r.Context())
	defer cancel()
	res, err := i.send(ctx, r, body, r.Fields())
	if err != nil {
		if es.IsLost(err) {
			c.after(0)
		}
		r.Fail(err)
		return
	}
	a := respond.FromEngine(res)
	defer a.Release()
	c.after(a.Status)
	_ = r.Answer(a.Status, a.Fields, a.Body)
}

// leftPatience is how long the answer to a change is waited for after its client has left.
const leftPatience = 10 * time.Second

// outlasting is ctx for a request whose answer is of use for a while after its client has left.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), proxy.ErrLeft) {
			time.AfterFunc(leftPatience, cancel)
			return
		}
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// renumbering is one change of indices or names.
type renumbering struct {
	i     *Interceptor
	ctx   context.Context
	asker catalog.Asker
	names
	listed   es.Listing // what the names stood for before; nil: it isn't known
	streamed bool       // where no answer comes, it isn't known whether all of the request was sent
}

func (c *renumbering) before() {
	if c.makes {
		c.listed = es.Listing{}
		return
	}
	c.listed, _ = c.i.catalog.List(c.ctx, c.asker, c.expression()) // without it only what a success proves is known
}

// after forgets the names that stand for other indices now. A success proves that the indices in the request are others. If the change
// may be carried out later, this is assumed for the indices that the client could see.
func (c *renumbering) after(status int) {
	verdict := verdictOf(status)
	if verdict == wasRefused {
		return
	}
	var changed []string
	if c.listed != nil && (verdict == isDone || !c.makes) {
		changed = c.compare()
	}
	for _, name := range c.proven {
		if _, seen := c.listed[name]; verdict == isDone || seen && !c.streamed {
			changed = append(changed, name)
		}
	}
	c.i.Writes.IndicesChanged(c.asker.Credentials, changed...)
}

// compare tells what stands for something else now. An index that was found by an alias, and isn't any more, is asked for by its
// name.
func (c *renumbering) compare() []string {
	now, err := c.i.catalog.List(c.ctx, c.asker, c.expression())
	if err != nil {
		return nil
	}
	if c.named {
		left := names{}
		for index := range c.listed {
			if _, there := now[index]; !there {
				left.add(uri.AppendSegment(nil, index))
			}
		}
		if len(left.encoded) > 0 {
			more, err := c.i.catalog.List(c.ctx, c.asker, left.expression())
			if err != nil {
				return nil
			}
			maps.Copy(now, more)
		}
	}
	return catalog.Changed(c.listed, now)
}

// names are those that a change may concern.
type names struct {
	proven  []string // indices that it makes or deletes, if it isn't refused
	makes   bool     // it makes one index, of a name that none has
	encoded []byte   // an expression for all of them, percent-encoded
	named   bool     // by aliases: an index may be one of theirs before, and not after
	all     bool     // they can't be told: any
}

// longestActions is how many bytes a body may have to be looked at for names.
const longestActions = 256 << 10

// longestExpression is how long a request line may get by one, in bytes: the engines take 4 KiB.
const longestExpression = 3 << 10

func (n *names) expression() string {
	if n.all || len(n.encoded) == 0 || len(n.encoded) > longestExpression {
		return "*"
	}
	return string(n.encoded)
}

// add adds names as they stand in a path. What begins with an underscore means all aliases of the indices that are named besides.
func (n *names) add(raw []byte) {
	if n.named && len(raw) > 0 && raw[0] == '_' || len(n.encoded) > longestExpression {
		return
	}
	if len(n.encoded) > 0 {
		n.encoded = append(n.encoded, ',')
	}
	n.encoded = append(n.encoded, raw...)
}

// of finds the names in a request that renumbers. unread says that its body can't be read.
func (n *names) of(op *api.Op, method string, body []byte, unread bool) {
	path := op.Segments()
	first, last := path[0], path[len(path)-1]
	switch {
	case op.Fragment: // engines differ in what such a path names: only a comparison can tell
		n.all = true
	case string(first) == "_aliases" || string(first) == "_alias":
		n.aliases(nil, path[1:], body, unread)
	case string(first) == "_data_stream" && len(path) == 2 && last[0] != '_':
		n.add(last)
	case first[0] == '_' && string(first) != "_all":
		n.all = true
	case len(path) == 1:
		n.index(op, first)
		n.makes = method == http.MethodPut && len(n.proven) == 1
	case string(path[1]) == "_aliases" || string(path[1]) == "_alias":
		n.aliases(first, path[2:], body, unread)
	case string(path[1]) == "_rollover":
		n.named = true
		n.add(first)
	case len(path) == 3 && slices.Contains(resizing, string(path[1])):
		n.add(last)
		n.proven, n.makes = []string{api.Name(last)}, true
	default:
		n.all = true
	}
}

// resizing are the endpoints that make an index out of another one's documents.
var resizing = []string{"_shrink", "_split", "_clone"}

// index is for the indices that a request makes or deletes by its path alone.
func (n *names) index(op *api.Op, list []byte) {
	n.add(list)
	if _, lenient := uri.Param(op.Query, "ignore_unavailable"); lenient {
		return // a success says nothing of each
	}
	var found []string
	for part := range bytes.SplitSeq(list, []byte(",")) {
		name := api.Name(part)
		if name != "" && name[0] == '-' {
			return // it may take out any of the others
		}
		if api.OneIndex(name) {
			found = append(found, name)
		}
	}
	n.proven = found
}

// aliases is for what a request calls aliases, in its path or in its body, and for the indices whose aliases they are.
func (n *names) aliases(index []byte, path [][]byte, body []byte, unread bool) {
	n.named = true
	if unread || len(bytes.TrimSpace(body)) > 0 && !jsontext.Valid(body) {
		n.all = true
		return
	}
	if len(index) > 0 {
		n.add(index)
	}
	if len(path) > 0 {
		n.add(path[0])
	}
	request := gjson.ParseBytes(body)
	n.action("", request)
	request.Get("actions").ForEach(func(_, action gjson.Result) bool {
		action.ForEach(func(kind, change gjson.Result) bool {
			n.action(kind.String(), change)
			return true
		})
		return true
	})
}

// action is for one change of an alias.
func (n *names) action(kind string, change gjson.Result) {
	change.ForEach(func(key, v gjson.Result) bool {
		switch key.String() {
		case "alias", "aliases", "index", "indices":
		default:
			return true
		}
		if !v.IsArray() {
			v = gjson.Parse("[" + v.Raw + "]")
		}
		v.ForEach(func(_, e gjson.Result) bool {
			name := e.String()
			n.all = n.all || name == "" || name[0] == '-' // it takes others out of an expression
			n.add(uri.AppendSegment(nil, name))
			if kind == "remove_index" && api.OneIndex(name) {
				n.proven = append(n.proven, name)
			}
			return true
		})
		return true
	})
}
