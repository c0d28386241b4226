package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"optimist/rewrite/tree"
)

func (c *call) createIndex() *Error {
	name, err := c.dateMath(c.vars.index)
	if err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return err
	}
	var s settings
	m := &mapping{root: field{typ: "object"}}
	aliases := make(map[string]*alias)
	if err := c.readIndexBody(&s, m, aliases); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.indices[name]; x != nil {
		e := badRequest("resource_already_exists_exception", "index [%s/%s] already exists", name, x.uuid)
		e.index = x
		return e
	}
	if len(c.aliases[name]) > 0 {
		e := badRequest("invalid_index_name_exception", "Invalid index name [%s], already exists as alias", name)
		e.name = name
		return e
	}
	x, err := c.newIndex(name, s, m)
	if err != nil {
		return err
	}
	for a, body := range aliases {
		if err := c.checkAlias(a, name, body); err != nil {
			return err
		}
	}
	c.indices[name] = x
	for a, body := range aliases {
		c.setAlias(a, name, body)
	}
	c.out = append(appendString(append(c.out, `{"acknowledged":true,"shards_acknowledged":true,"index":`...), name), '}')
	return nil
}

// acknowledge answers that a change is done.
func (c *call) acknowledge() *Error {
	c.out = append(c.out, `{"acknowledged":true}`...)
	return nil
}

func (c *call) readIndexBody(s *settings, m *mapping, aliases map[string]*alias) *Error {
	err := c.eachMember(func(kid *node) *Error {
		switch kid.name {
		case "settings":
			s.read(kid, "")
			return nil
		case "mappings":
			return m.merge(kid)
		case "aliases":
			return kid.each(func(of *node) (err *Error) {
				aliases[of.name], err = readAlias(of)
				return err
			})
		}
		return badRequest("parse_exception", "unknown key [%s] for create index", kid.name)
	})
	if err != nil {
		return err
	}
	return s.unknown()
}

// unknown refuses settings that the engine doesn't have.
func (s settings) unknown() *Error {
	for _, p := range s {
		if !knownSetting(p.Name) {
			return illegalArgument("unknown setting [%s] please check that any required plugins are installed, or check the breaking changes documentation for removed settings", p.Name)
		}
	}
	return nil
}

// knownSetting reports whether the engine has settings with that first part.
func knownSetting(name string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(name, "index."), ".")
	return slices.Contains([]string{"number_of_shards", "number_of_replicas", "number_of_routing_shards", "routing_partition_size", "auto_expand_replicas",
		"refresh_interval", "hidden", "blocks", "mapping", "max_result_window", "max_inner_result_window", "max_terms_count", "max_regex_length",
		"max_ngram_diff", "max_shingle_diff", "max_docvalue_fields_search", "max_script_fields", "max_rescore_window", "query", "analysis", "similarity",
		"codec", "sort", "routing", "allocation", "translog", "merge", "gc_deletes", "default_pipeline", "final_pipeline", "lifecycle", "mode",
		"priority", "search", "indexing", "soft_deletes", "shard", "store", "unassigned", "write", "disable_sequence_numbers", "format", "fielddata",
		"analyze", "highlight", "load_fixed_bitset_filters_eagerly", "warmer", "knn", "replication", "uuid", "version", "creation_date", "provided_name"}, first)
}

func (c *call) deleteIndex() *Error {
	how := c.expand()
	if c.bad != nil {
		return c.bad
	}
	if strings.Contains(c.vars.index, "*") || c.vars.index == "_all" {
		return illegalArgument("Wildcard expressions or all indices are not allowed")
	}
	how.noAlias = true
	gone, err := c.resolve(c.vars.index, how)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range gone {
		if c.indices[x.name] == x {
			delete(c.indices, x.name)
			c.dropAliases(x.name)
		}
	}
	return c.acknowledge()
}

// eachIndex answers with an object that has one member for each index of the request.
func (c *call) eachIndex(body func(dst []byte, x *index) []byte) *Error {
	found, err := c.found()
	if err != nil {
		return err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.out = append(c.out, '{')
	for _, x := range found {
		c.out = body(appendName(c.out, x.name), x)
	}
	c.out = append(c.out, '}')
	return nil
}

func (c *call) getIndex() *Error {
	if c.req.Method == "HEAD" {
		found, err := c.found()
		if err != nil {
			return err
		}
		if len(found) == 0 {
			c.resp.Status = 404
		}
	}
	flat := c.flag("flat_settings", false)
	return c.eachIndex(func(dst []byte, x *index) []byte {
		dst = c.appendAliases(append(dst, `{"aliases":`...), x.name, nil)
		dst = x.copyMapping().appendJSON(append(dst, `,"mappings":`...))
		return append(x.appendSettings(append(dst, `,"settings":`...), flat), '}')
	})
}

func (c *call) getMapping() *Error {
	return c.eachIndex(func(dst []byte, x *index) []byte {
		return append(x.copyMapping().appendJSON(append(dst, `{"mappings":`...)), '}')
	})
}

func (c *call) getSettings() *Error {
	flat := c.flag("flat_settings", false)
	return c.eachIndex(func(dst []byte, x *index) []byte {
		return append(x.appendSettings(append(dst, `{"settings":`...), flat), '}')
	})
}

// appendSettings appends the settings that were given, and those that the engine adds.
func (x *index) appendSettings(dst []byte, flat bool) []byte {
	all := slices.Clone(*x.settings.Load())
	for _, name := range []string{"index.number_of_shards", numberOfReplicas} {
		if _, given := all.get(name); !given {
			all.set(name, "1")
		}
	}
	all.set("index.creation_date", strconv.FormatInt(x.created, 10))
	all.set("index.provided_name", x.name)
	all.set("index.uuid", x.uuid)
	all.set("index.version.created", "9111000")
	if flat {
		return all.appendFlat(dst)
	}
	return all.appendNested(dst)
}

func (c *call) putMapping() *Error {
	n, err := parseObject(c.req.Body)
	if err != nil {
		return err
	}
	found, err := c.found()
	if err != nil {
		return err
	}
	for _, x := range found {
		x.mapMu.Lock()
		next := x.mapping.clone()
		if err = next.merge(n); err == nil {
			x.mapping = next
		}
		x.mapMu.Unlock()
		if err != nil {
			return err
		}
	}
	return c.acknowledge()
}

func (c *call) putSettings() *Error {
	n, err := parseObject(c.req.Body)
	if err != nil {
		return err
	}
	if inner := n.member("settings"); inner != nil && inner.kind == tree.Object {
		n = inner
	}
	found, err := c.found()
	if err != nil {
		return err
	}
	var given settings
	given.read(n, "")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range found {
		for _, p := range given {
			if p.Name == "index.number_of_shards" || p.Name == "index.uuid" {
				return illegalArgument("Can't update non dynamic setting(s) [[%s]] for open indices [[%s/%s]]", p.Name, x.name, x.uuid)
			}
		}
		if err := given.unknown(); err != nil {
			return err
		}
		next := slices.Clone(*x.settings.Load())
		next.read(n, "")
		if err := next.check(); err != nil {
			return err
		}
		x.settings.Store(&next)
	}
	return c.acknowledge()
}

// refreshIndex answers a refresh. There is nothing to do: a search sees every write that was answered.
func (c *call) refreshIndex() *Error {
	found, err := c.found()
	if err != nil {
		return err
	}
	total := 0
	for _, x := range found {
		total += 1 + x.replicas()
	}
	c.out = fmt.Appendf(c.out, `{"_shards":{"total":%d,"successful":%d,"failed":0}}`, total, len(found))
	return nil
}
