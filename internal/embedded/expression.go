package embedded

import (
	"maps"
	"slices"
	"strings"

	"optimist/internal/glob"
)

// target finds the index that a write goes to: the index of that name, the write index of that alias, or a new index. a is the alias, or
// nil.
func (e *Engine) target(name string, needAlias bool) (x *index, a *alias, err *Error) {
	if name, err = e.dateMath(name); err != nil {
		return nil, nil, err
	}
	e.mu.RLock()
	x, a, err = e.lookup(name, true)
	isAlias := len(e.aliases[name]) > 0
	e.mu.RUnlock()
	if needAlias && !isAlias {
		err := &Error{Status: 404, Type: "index_not_found_exception", name: name}
		err.Reason = "no such index [" + name + "] and [require_alias] request flag is [true] and [" + name + "] is not an alias"
		return nil, nil, err
	}
	if x != nil || err != nil {
		return x, a, err
	}
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x, a, err = e.lookup(name, true); x != nil || err != nil {
		return x, a, err
	}
	if x, err = e.newIndex(name, nil, nil); err != nil {
		return nil, nil, err
	}
	e.indices[name] = x
	return x, nil, nil
}

// single finds the one index that a read of a document goes to.
func (e *Engine) single(name string) (*index, *Error) {
	name, err := e.dateMath(name)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	x, _, err := e.lookup(name, false)
	if x == nil && err == nil {
		err = errIndexNotFound(name)
	}
	return x, err
}

// lookup finds one index by its own name or an alias; nil if there is none. The lock must be held.
func (e *Engine) lookup(name string, forWrite bool) (*index, *alias, *Error) {
	if x := e.indices[name]; x != nil {
		return x, nil, nil
	}
	of := e.aliases[name]
	if len(of) == 0 {
		return nil, nil, nil
	}
	names := make([]string, 0, len(of))
	for n, a := range of {
		chosen := !forWrite && len(of) == 1
		if forWrite {
			chosen = a.writeIndex == nil && len(of) == 1 || a.writeIndex != nil && *a.writeIndex
		}
		if chosen {
			return e.indices[n], a, nil
		}
		names = append(names, n)
	}
	slices.Sort(names)
	if forWrite {
		return nil, nil, illegalArgument("no write index is defined for alias [%s]. The write index may be explicitly disabled using "+
			"is_write_index=false or the alias points to multiple indices without one being designated as a write index", name)
	}
	return nil, nil, illegalArgument("alias [%s] has more than one index associated with it [%s], can't execute a single index op",
		name, strings.Join(names, ", "))
}

// expand says how an expression with several names is understood.
type expand struct {
	lenient bool // ignore_unavailable: names that don't exist are left out
	empty   bool // allow_no_indices: wildcards may match nothing
	hidden  bool // expand_wildcards names hidden or all
	noAlias bool // names must be of indices
}

func (c *call) expand() expand {
	states := c.params.list("expand_wildcards")
	return expand{lenient: c.flag("ignore_unavailable", false), empty: c.flag("allow_no_indices", true),
		hidden: slices.Contains(states, "all") || slices.Contains(states, "hidden")}
}

// found returns the indices that the request names.
func (c *call) found() ([]*index, *Error) {
	how := c.expand()
	if c.bad != nil {
		return nil, c.bad
	}
	return c.resolve(c.vars.index, how)
}

// resolve finds the indices of an expression, sorted by name. The expression has names, aliases and wildcards, separated by commas. A name
// with a minus excludes indices that an earlier wildcard has matched.
func (e *Engine) resolve(expr string, how expand) ([]*index, *Error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	found := make(map[string]*index)
	parts := strings.Split(expr, ",")
	if expr == "" || expr == "_all" {
		parts = []string{"*"}
	}
	wild := false
	for _, part := range parts {
		rest, minus := strings.CutPrefix(part, "-")
		switch {
		case minus && wild:
			maps.DeleteFunc(found, func(name string, _ *index) bool { return glob.Match(rest, name) })
		case strings.Contains(part, "*"):
			wild = true
			if e.match(part, how, found) == 0 && !how.empty {
				return nil, errIndexNotFound(part)
			}
		default:
			if err := e.named(part, how, found); err != nil {
				return nil, err
			}
		}
	}
	if len(found) == 0 && !how.empty {
		return nil, errIndexNotFound(expr)
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *index) int { return strings.Compare(a.name, b.name) }), nil
}

// named adds the indices of one name that has no wildcard.
func (e *Engine) named(name string, how expand, found map[string]*index) *Error {
	name, err := e.dateMath(name)
	if err != nil {
		return err
	}
	if x := e.indices[name]; x != nil {
		found[name] = x
		return nil
	}
	of := e.aliases[name]
	switch {
	case len(of) > 0 && how.noAlias:
		return illegalArgument("The provided expression [%s] matches an alias, specify the corresponding concrete indices instead.", name)
	case len(of) == 0 && how.lenient:
		return nil
	case len(of) == 0 && strings.HasPrefix(name, "_"):
		e := badRequest("invalid_index_name_exception", "Invalid index name [%s], must not start with '_'.", name)
		e.name = name
		return e
	case len(of) == 0:
		return errIndexNotFound(name)
	}
	for n := range of {
		found[n] = e.indices[n]
	}
	return nil
}

func (e *Engine) match(pattern string, how expand, found map[string]*index) (n int) {
	for name, x := range e.indices {
		seen := how.hidden || !x.hidden() && name[0] != '.' || strings.HasPrefix(pattern, ".") && name[0] == '.'
		if seen && glob.Match(pattern, name) {
			found[name] = x
			n++
		}
	}
	if how.noAlias {
		return n
	}
	for name, of := range e.aliases {
		if !glob.Match(pattern, name) {
			continue
		}
		for n := range of {
			found[n] = e.indices[n]
		}
		n++
	}
	return n
}
