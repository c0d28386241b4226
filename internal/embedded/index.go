package embedded

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// index is one index. Its name and uuid never change; its metadata is guarded by the engine's lock, its documents by the
// shard's.
type index struct {
	name, uuid string
	created    int64 // ms since 1970
	settings   settings
	replicas   int
	shard      shard
}

// alias is what one alias says about one of its indices.
type alias struct {
	writeIndex *bool // is_write_index, where it was given
	body       []byte
}

// newUUID returns 128 random bits as the engines write them.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

const forbiddenInNames = ` "*,/<>?\|`

// checkName says what is wrong with the name of an index that is to be made.
func checkName(name string) *Error {
	bad := func(format string, args ...any) *Error {
		e := badRequest("invalid_index_name_exception", "Invalid index name [%s], %s", name, fmt.Sprintf(format, args...))
		e.name = name
		return e
	}
	switch {
	case name == "":
		return bad("must not be empty")
	case strings.ContainsAny(name, forbiddenInNames):
		return bad(`must not contain the following characters [' ','"','*',',','/','<','>','?','\','|']`)
	case strings.Contains(name, "#"):
		return bad("must not contain '#'")
	case strings.Contains(name, ":"):
		return bad("must not contain ':'")
	case name[0] == '_' || name[0] == '-' || name[0] == '+':
		return bad("must not start with '_', '-', or '+'")
	case name == "." || name == "..":
		return bad("must not be '.' or '..'")
	case len(name) > 255:
		return bad("index name is too long, (%d > 255)", len(name))
	case strings.ToLower(name) != name:
		return bad("must be lowercase")
	}
	return nil
}

// newIndex makes an index with no documents.
func (e *Engine) newIndex(name string, s settings) (*index, *Error) {
	x := &index{name: name, uuid: newUUID(), created: e.clock().UnixMilli(), settings: s, replicas: 1}
	x.shard.clock = e.clock
	if v, ok := s.get("index.number_of_replicas"); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, illegalArgument("Failed to parse value [%s] for setting [index.number_of_replicas] must be >= 0", v)
		}
		x.replicas = n
	}
	return x, nil
}

// target finds the index that a write goes to: itself, an alias's write index, or one made for it.
func (e *Engine) target(name string, needAlias bool) (*index, *Error) {
	e.mu.RLock()
	x, err := e.lookup(name, true)
	_, isAlias := e.aliases[name]
	e.mu.RUnlock()
	if needAlias && !isAlias {
		err := errIndexNotFound(name)
		err.Reason = "no such index [" + name + "] and [require_alias] request flag is [true] and [" + name + "] is not an alias"
		err.resource = ""
		return nil, err
	}
	if x != nil || err != nil {
		return x, err
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x, err := e.lookup(name, true); x != nil || err != nil {
		return x, err
	}
	if x, err = e.newIndex(name, nil); err != nil {
		return nil, err
	}
	e.indices[name] = x
	return x, nil
}

// single finds the one index that a read of a document goes to.
func (e *Engine) single(name string) (*index, *Error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	x, err := e.lookup(name, false)
	if x == nil && err == nil {
		err = errIndexNotFound(name)
	}
	return x, err
}

// lookup finds one index by its own name or an alias; nil if there is none. The lock must be held.
func (e *Engine) lookup(name string, forWrite bool) (*index, *Error) {
	if x := e.indices[name]; x != nil {
		return x, nil
	}
	of := e.aliases[name]
	if len(of) == 0 {
		return nil, nil
	}
	if len(of) == 1 && !forWrite {
		for only := range of {
			return e.indices[only], nil
		}
	}
	names := make([]string, 0, len(of))
	for n, a := range of {
		if forWrite && (a.writeIndex == nil && len(of) == 1 || a.writeIndex != nil && *a.writeIndex) {
			return e.indices[n], nil
		}
		names = append(names, n)
	}
	slices.Sort(names)
	if forWrite {
		return nil, illegalArgument("no write index is defined for alias [%s]. The write index may be explicitly disabled using "+
			"is_write_index=false or the alias points to multiple indices without one being designated as a write index", name)
	}
	return nil, illegalArgument("alias [%s] has more than one index associated with it [%s], can't execute a single index op",
		name, strings.Join(names, ", "))
}
