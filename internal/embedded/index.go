package embedded

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// index is one index. Its name, uuid and created never change. mapMu guards the mapping, and the shard's lock the documents.
type index struct {
	name, uuid string
	created    int64                    // ms since 1970
	settings   atomic.Pointer[settings] // never nil; a change replaces it, because others may read it
	shard      shard

	mapMu   sync.RWMutex
	mapping *mapping // never nil; a change replaces it, because others may read it
}

// alias holds the properties of one alias for one of its indices.
type alias struct {
	writeIndex    *bool  // is_write_index, where it was given
	indexRouting  string // given to writes through the alias
	searchRouting string
	hidden        bool
}

// newUUID returns 128 random bits as the engines write them.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

const forbiddenInNames = ` "*,/<>?\|`

// checkName checks the name of a new index.
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
func (e *Engine) newIndex(name string, s settings, m *mapping) (*index, *Error) {
	if m == nil {
		m = &mapping{root: field{typ: "object"}}
	}
	x := &index{name: name, uuid: newUUID(), created: e.clock().UnixMilli(), mapping: m}
	x.settings.Store(&s)
	x.shard.clock = e.clock
	return x, s.check()
}

// replicas is how many copies of its shard the index would have in a cluster. The engines' default is one.
func (x *index) replicas() int {
	if text, given := x.settings.Load().get(numberOfReplicas); given {
		n, _ := strconv.Atoi(text) // check has refused what is no number
		return n
	}
	return 1
}

const numberOfReplicas = "index.number_of_replicas"

// check refuses wrong settings, and those that this engine would otherwise ignore silently.
func (s settings) check() *Error {
	for _, p := range s {
		switch {
		case p.Name == numberOfReplicas:
			if n, err := strconv.Atoi(p.Value); err != nil || n < 0 {
				return illegalArgument("Failed to parse value [%s] for setting [index.number_of_replicas] must be >= 0", p.Value)
			}
		case p.Name == "index.default_pipeline" || p.Name == "index.final_pipeline":
			if p.Value != "_none" {
				return unsupported("ingest pipelines")
			}
		case p.Name == "index.mode" && p.Value != "standard", p.Name == "index.mapping.source.mode" && p.Value != "stored",
			p.Name == "index.disable_sequence_numbers" && p.Value == "true", strings.HasPrefix(p.Name, "index.blocks.") && p.Value == "true":
			return unsupported("indices with [" + p.Name + "]")
		}
	}
	return nil
}

// hidden reports whether wildcards leave the index out.
func (x *index) hidden() bool {
	v, _ := x.settings.Load().get("index.hidden")
	return v == "true"
}

func (x *index) copyMapping() *mapping {
	x.mapMu.RLock()
	defer x.mapMu.RUnlock()
	return x.mapping
}
