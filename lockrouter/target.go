package lockrouter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"optimist/internal/uri"
	"optimist/lockrouter/state"
)

// target is a lock: what a path under _lock names. That of the locks of several documents has an index and a gate only.
type target struct {
	kind  state.Kind
	id    string // the id of the lock's document
	root  string // the path of that document's lock, as users name it; for a tree, the path of its root
	path  string // the path within a tree; else empty
	gate  string // the gate that the lock is behind
	index string // for a lock of documents or of a tree, their index
	doc   string // for a lock of one document, that document's id
	lock  string // the lock's path, as users name it
}

// endpoint is what a request under _lock is about.
type endpoint uint8

const (
	unknownEndpoint endpoint = iota
	oneLock                  // a global, document or tree lock
	manyDocs                 // POST /{index}/_lock/docs
	listing                  // GET /_lock
	releasing                // POST /_lock/_release
)

// Takes reports whether a request is for the locks, by its path. For all other requests it costs next to nothing.
func (r *Router) Takes(path []byte) bool {
	p := r.o.Path
	if under(path, p) {
		return true
	}
	if len(path) < 2 || path[1] == '_' {
		return false
	}
	i := bytes.IndexByte(path[1:], '/')
	return i > 0 && under(path[1+i:], p)
}

func under(path []byte, prefix string) bool {
	return len(path) >= len(prefix) && string(path[:len(prefix)]) == prefix && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// The longest names, in bytes. The engine takes no longer ids and names of indices; and no document whose lock's path, in which a byte may
// be three, is longer than 32766.
const (
	longestID    = 512
	longestIndex = 255
	longestName  = 1024
)

// locate finds out which lock, or which list, a path names. Its errors are answers.
func (r *Router) locate(path []byte) (what endpoint, t *target, err error) {
	if !r.Takes(path) { // the operator may name anything
		return unknownEndpoint, nil, r.noLock(path)
	}
	if under(path, r.o.Path) {
		return r.locateGlobal(path)
	}
	raw, _, _ := strings.Cut(string(path[1:]), "/")
	index, err := decodeSegment(raw)
	switch {
	case err != nil:
		return unknownEndpoint, nil, err
	case strings.ContainsAny(index, `,*?"<>| /\#`) || index == "":
		return unknownEndpoint, nil, badRequest("a lock is of one index, by its name; [" + index + "] isn't one")
	case len(index) > longestIndex:
		return unknownEndpoint, nil, badRequest("the name of an index has up to 255 bytes")
	}
	what = oneLock
	switch word, rest, more := r.below(path[1+len(raw):]); {
	case word == "doc" && rest != "":
		t, err = r.doc(index, rest)
	case word == "docs" && !more:
		what, t = manyDocs, &target{gate: indexGate + index, index: index}
	case word == "tree":
		t, err = r.tree(index, rest)
	default:
		err = r.noLock(path)
	}
	return what, t, err
}

// locateGlobal reads a path that names no index.
func (r *Router) locateGlobal(path []byte) (what endpoint, t *target, err error) {
	switch word, rest, more := r.below(path); {
	case word == "":
		what = listing
	case word == "_release" && !more:
		what = releasing
	case word == "global":
		what = oneLock
		t, err = r.global(rest)
	default:
		err = r.noLock(path)
	}
	return what, t, err
}

// below is the first segment below the locks' own, and what follows it.
func (r *Router) below(path []byte) (word, rest string, more bool) {
	return strings.Cut(strings.TrimPrefix(string(path[len(r.o.Path):]), "/"), "/")
}

func (r *Router) noLock(path []byte) error {
	return badRequest("there is no lock of the path [" + string(path) + "]: locks are " + r.o.Path +
		"/global/{name}, and /doc/{id}, /docs and /tree/{path} below /{index}" + r.o.Path)
}

func (r *Router) global(raw string) (*target, error) {
	name, err := decodeSegment(strings.TrimSuffix(raw, "/"))
	if err != nil {
		return nil, err
	}
	if len(name) > longestName {
		return nil, badRequest("the name of a lock has up to 1024 bytes")
	}
	return r.globalOf(name), nil
}

func (r *Router) globalOf(name string) *target {
	lock := r.o.Path + "/global"
	if name != "" {
		lock += "/" + escapeSegment(name)
	}
	return &target{kind: state.Global, id: globalID(name), root: lock, lock: lock, gate: globalGate + name}
}

// onlyGlobal is the reason for refusing a resource with any other path.
const onlyGlobal = "a resource is a lock without an index and without another name: PUT /_lock/global"

// resource returns the lock that a request names: by its path, or by a list of strings. The name of a list's lock is its strings, each
// encoded as a segment of a path, joined by slashes. So two different lists are always two locks.
func (r *Router) resource(t *target, a *parameters) (*target, error) {
	if len(a.Resource) == 0 {
		return t, nil
	}
	if t.id != globalID("") {
		return nil, badRequest(onlyGlobal)
	}
	var name []byte
	for i, s := range a.Resource {
		if err := text("resource", s); err != nil {
			return nil, err
		}
		if i > 0 {
			name = append(name, '/')
		}
		name = uri.AppendSegment(name, s)
	}
	if len(name) == 0 {
		return nil, badRequest("a resource of one empty string has no name")
	}
	return r.global(escapeSegment(string(name)))
}

func (r *Router) doc(index, raw string) (*target, error) {
	id, err := decodeSegment(strings.TrimSuffix(raw, "/"))
	if err != nil {
		return nil, err
	}
	if len(id) > longestID {
		return nil, badRequest("id is too long, must be no longer than 512 bytes")
	}
	return r.docOf(index, id), nil
}

func (r *Router) docOf(index, id string) *target {
	lock := "/" + escapeSegment(index) + r.o.Path + "/doc/" + escapeSegment(id)
	return &target{kind: state.Document, id: documentID(index, id), root: lock, lock: lock, gate: indexGate + index, index: index,
		doc: id}
}

func (r *Router) tree(index, raw string) (*target, error) {
	path, err := decodeSegment(raw)
	if err != nil {
		return nil, err
	}
	if path, err = state.Path(path); err != nil {
		return nil, badRequest(err.Error())
	}
	return r.treeOf(index, path), nil
}

// treeOf is the lock of a path in the form of state.Path.
func (r *Router) treeOf(index, path string) *target {
	root := "/" + escapeSegment(index) + r.o.Path + "/tree"
	return &target{kind: state.Tree, id: treeID(index), root: root, path: path, lock: root + treePath(path), gate: indexGate + index,
		index: index}
}

// treePath is a path within a tree as users name it: each segment escaped, no slash at the end but for the root's.
func treePath(path string) string {
	if path == "/" {
		return "/"
	}
	var b []byte
	for seg := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		b = uri.AppendSegment(append(b, '/'), seg)
	}
	return string(b)
}

// lockOf returns the path of a lease of a document, as users name it.
func lockOf(d *state.Doc, path string) string {
	if d.Kind == state.Tree {
		return d.Lock + treePath(path)
	}
	return d.Lock
}

// targetOf returns the lock of a document's lease. Its path may begin with an earlier value of locks.path.
func targetOf(d *state.Doc, path string) (*target, error) {
	var names []string
	for seg := range strings.SplitSeq(strings.TrimPrefix(d.Lock, "/"), "/") {
		name, err := decodeSegment(seg)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	t := &target{kind: d.Kind, root: d.Lock, path: path, lock: lockOf(d, path)}
	switch n := len(names); {
	case d.Kind == state.Global && n == 2:
		t.id = globalID("")
	case d.Kind == state.Global && n == 3:
		t.id = globalID(names[2])
	case d.Kind == state.Document && n == 4:
		t.id = documentID(names[0], names[3])
	case d.Kind == state.Tree && n == 3:
		t.id = treeID(names[0])
	default:
		return nil, badRequest("a document of the locks is of no lock: [" + d.Lock + "]")
	}
	return t, nil
}

func globalID(name string) string        { return Identity("global:" + name) }
func documentID(index, id string) string { return Identity("doc:" + index + "/" + id) }
func treeID(index string) string         { return Identity("tree:" + index) }

// Identity returns a document's id for a name: the name itself if the engine accepts it as an id.
func Identity(name string) string {
	if len(name) <= longestID {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func escapeSegment(name string) string { return string(uri.AppendSegment(nil, name)) }

func decodeSegment(raw string) (string, error) {
	b, err := uri.Unescape(nil, []byte(raw))
	if err != nil || !utf8.Valid(b) {
		return "", badRequest("the path isn't UTF-8 in percent-encoding")
	}
	return string(b), nil
}
