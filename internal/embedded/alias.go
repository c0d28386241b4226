package embedded

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/glob"
	"optimist/rewrite/tree"
)

// readAlias reads what a request says about an alias.
func readAlias(n *node) (*alias, *Error) {
	a := &alias{}
	for _, kid := range n.kids {
		switch kid.name {
		case "routing":
			a.indexRouting, a.searchRouting = kid.text(), kid.text()
		case "index_routing", "indexRouting", "index-routing":
			a.indexRouting = kid.text()
		case "search_routing", "searchRouting", "search-routing":
			a.searchRouting = kid.text()
		case "is_write_index":
			is := kid.isTrue()
			a.writeIndex = &is
		case "is_hidden":
			a.hidden = kid.isTrue()
		case "filter":
			return nil, unsupported("aliases with a filter")
		case "index", "indices", "alias", "aliases", "must_exist":
		default:
			return nil, illegalArgument("Unknown field [%s] in alias [%s]", kid.name, n.name)
		}
	}
	return a, nil
}

// checkAlias says why an alias can't be set. The engine's lock must be held.
func (e *Engine) checkAlias(name, indexName string, a *alias) *Error {
	if err := checkName(name); err != nil && err.Reason != "Invalid index name ["+name+"], must be lowercase" {
		return badRequest("invalid_alias_name_exception", "Invalid alias name [%s]: %s", name, strings.TrimPrefix(err.Reason, "Invalid index name ["+name+"], "))
	}
	if e.indices[name] != nil {
		err := badRequest("invalid_alias_name_exception", "Invalid alias name [%s]: an index or data stream exists with the same name as the alias", name)
		err.index = e.indices[name]
		return err
	}
	if a.writeIndex == nil || !*a.writeIndex {
		return nil
	}
	for other, b := range e.aliases[name] {
		if other != indexName && b.writeIndex != nil && *b.writeIndex {
			return badRequest("illegal_state_exception", "alias [%s] has more than one write index [%s,%s]", name, other, indexName)
		}
	}
	return nil
}

func (e *Engine) setAlias(name, indexName string, a *alias) {
	if e.aliases[name] == nil {
		e.aliases[name] = make(map[string]*alias)
	}
	e.aliases[name][indexName] = a
}

func (e *Engine) dropAlias(name, indexName string) bool {
	if _, ok := e.aliases[name][indexName]; !ok {
		return false
	}
	delete(e.aliases[name], indexName)
	if len(e.aliases[name]) == 0 {
		delete(e.aliases, name)
	}
	return true
}

func (e *Engine) dropAliases(indexName string) {
	for name := range e.aliases {
		e.dropAlias(name, indexName)
	}
}

// appendAliases appends the aliases of an index that match one of the patterns. Without patterns it appends all.
func (e *Engine) appendAliases(dst []byte, indexName string, patterns []string) []byte {
	dst = append(dst, '{')
	for _, name := range slices.Sorted(maps.Keys(e.aliases)) {
		a := e.aliases[name][indexName]
		if a == nil || !anyMatch(patterns, name) {
			continue
		}
		dst = append(appendName(dst, name), '{')
		if a.indexRouting != "" {
			dst = appendString(appendName(dst, "index_routing"), a.indexRouting)
		}
		if a.searchRouting != "" {
			dst = appendString(appendName(dst, "search_routing"), a.searchRouting)
		}
		if a.writeIndex != nil {
			dst = strconv.AppendBool(appendName(dst, "is_write_index"), *a.writeIndex)
		}
		if a.hidden {
			dst = append(appendName(dst, "is_hidden"), "true"...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func anyMatch(patterns []string, name string) bool {
	if len(patterns) == 0 || patterns[0] == "_all" {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return glob.Match(p, name) })
}

func (c *call) getAlias() *Error {
	found, err := c.found()
	if err != nil {
		return err
	}
	var want []string
	if c.vars.name != "" {
		want = strings.Split(c.vars.name, ",")
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if missing := c.missingAliases(want); len(missing) > 0 {
		plural := ""
		if len(missing) > 1 {
			plural = "es"
		}
		return &Error{Status: 404, Plain: true, Reason: "alias" + plural + " [" + strings.Join(missing, ",") + "] missing"}
	}
	c.out = append(c.out, '{')
	for _, x := range found {
		start := len(c.out)
		c.out = append(appendName(c.out, x.name), `{"aliases":`...)
		before := len(c.out)
		c.out = c.appendAliases(c.out, x.name, want)
		if len(c.out) == before+2 && (len(want) > 0 || c.vars.index == "") {
			c.out = c.out[:start] // an index without the alias is left out
			continue
		}
		c.out = append(c.out, '}')
	}
	c.out = append(c.out, '}')
	return nil
}

func (e *Engine) missingAliases(want []string) (missing []string) {
	for _, w := range want {
		if w != "_all" && !strings.Contains(w, "*") && len(e.aliases[w]) == 0 {
			missing = append(missing, w)
		}
	}
	return missing
}

func (c *call) putAlias() *Error {
	a := &alias{}
	if len(c.req.Body) > 0 {
		n, err := parseObject(c.req.Body)
		if err != nil {
			return err
		}
		if a, err = readAlias(n); err != nil {
			return err
		}
	}
	return c.changeAliases([]aliasAction{{indices: []string{c.vars.index}, names: []string{c.vars.name}, set: a}})
}

func (c *call) deleteAlias() *Error {
	return c.changeAliases([]aliasAction{{indices: []string{c.vars.index}, names: strings.Split(c.vars.name, ","), must: true}})
}

// aliasAction is one of the actions of POST _aliases. Without set and dropIndex it removes aliases.
type aliasAction struct {
	indices, names []string
	set            *alias
	dropIndex      bool
	must           bool // removing none is an error
}

func (c *call) updateAliases() *Error {
	n, err := parseObject(c.req.Body)
	if err != nil {
		return err
	}
	list := n.member("actions")
	if list == nil || list.kind != tree.Array || len(list.kids) == 0 {
		return illegalArgument("No action specified")
	}
	actions := make([]aliasAction, 0, len(list.kids))
	for _, item := range list.kids {
		if item.kind != tree.Object || len(item.kids) != 1 {
			return illegalArgument("Each action must be one of [add], [remove] and [remove_index]")
		}
		body := item.kids[0]
		a := aliasAction{indices: append(body.member("index").texts(), body.member("indices").texts()...),
			names: append(body.member("alias").texts(), body.member("aliases").texts()...), must: body.member("must_exist").text() != "false"}
		switch body.name {
		case "add":
			if a.set, err = readAlias(body); err != nil {
				return err
			}
		case "remove":
		case "remove_index":
			a.dropIndex = true
		default:
			return illegalArgument("Unknown action [%s]", body.name)
		}
		if len(a.indices) == 0 {
			return illegalArgument("One of [index] or [indices] is required")
		}
		if len(a.names) == 0 && !a.dropIndex {
			return illegalArgument("One of [alias] or [aliases] is required")
		}
		actions = append(actions, a)
	}
	return c.changeAliases(actions)
}

// changeAliases applies all actions. If one of them can't be applied, it applies none.
func (c *call) changeAliases(actions []aliasAction) *Error {
	resolved := make([][]*index, len(actions))
	for i, a := range actions {
		found, err := c.resolve(strings.Join(a.indices, ","), expand{noAlias: true})
		if err != nil {
			return err
		}
		resolved[i] = found
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := make(map[string]map[string]*alias, len(c.aliases))
	for name, of := range c.aliases {
		before[name] = maps.Clone(of)
	}
	indices := maps.Clone(c.indices)
	for i, a := range actions {
		if err := c.applyAlias(a, resolved[i]); err != nil {
			c.aliases, c.indices = before, indices
			return err
		}
	}
	c.out = append(c.out, `{"acknowledged":true,"errors":false}`...)
	return nil
}

func (c *call) applyAlias(a aliasAction, on []*index) *Error {
	removed := false
	for _, x := range on {
		if a.dropIndex {
			delete(c.indices, x.name)
			c.dropAliases(x.name)
			continue
		}
		for _, name := range a.names {
			if a.set == nil {
				removed = c.dropAlias(name, x.name) || removed
				continue
			}
			if err := c.checkAlias(name, x.name, a.set); err != nil {
				return err
			}
			c.setAlias(name, x.name, a.set)
		}
	}
	if a.set == nil && !a.dropIndex && !removed && a.must {
		names := strings.Join(a.names, ",")
		return &Error{Status: 404, Type: "aliases_not_found_exception", Reason: "aliases [" + names + "] missing", name: names, resource: "aliases"}
	}
	return nil
}
