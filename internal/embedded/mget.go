package embedded

import "optimist/rewrite/tree"

// wanted is one document of a multi-get.
type wanted struct {
	index, id, routing string
	version            int64
	filter             *sourceFilter
}

func (c *call) mget() *Error {
	if len(c.req.Body) == 0 {
		return badRequest("parse_exception", "request body or source parameter is required")
	}
	n, err := parseObject(c.req.Body)
	if err != nil {
		return err
	}
	docs, err := c.wanted(n, c.sourceFilter())
	if err != nil {
		return err
	}
	c.out = append(c.out, `{"docs":[`...)
	for i := range docs {
		c.out = appendComma(c.out)
		c.appendWanted(&docs[i])
	}
	c.out = append(c.out, ']', '}')
	return nil
}

func (c *call) wanted(n *node, filter *sourceFilter) ([]wanted, *Error) {
	var docs []wanted
	for _, list := range n.kids {
		if list.name != "ids" && list.name != "docs" || list.kind != tree.Array {
			return nil, badRequest("parsing_exception", "unexpected token in [%s], expected [docs] or [ids]", list.name)
		}
		for _, item := range list.kids {
			w := wanted{index: c.vars.index, routing: c.params.get("routing"), version: matchAny, filter: filter}
			if list.name == "ids" {
				w.id = item.text()
			} else if err := w.read(item); err != nil {
				return nil, err
			}
			docs = append(docs, w)
		}
	}
	var v validation
	if len(docs) == 0 {
		v.add("no documents to get")
	}
	for i := range docs {
		if docs[i].index == "" {
			v.add("index is missing for doc %d", i)
		}
		if docs[i].id == "" {
			v.add("id is missing for doc %d", i)
		}
	}
	return docs, v.err()
}

func (w *wanted) read(n *node) *Error {
	stored := false
	for _, kid := range n.kids {
		switch kid.name {
		case "_index":
			w.index = kid.text()
		case "_id":
			w.id = kid.text()
		case "routing":
			w.routing = kid.text()
		case "version":
			v, err := parseNumber("version", kid.text(), 64)
			if err != nil {
				return err
			}
			w.version = v
		case "_source":
			w.filter = filterOf(kid)
			stored = false
		case "stored_fields":
			stored = true
		case "version_type", "_version_type":
		default:
			return badRequest("parse_exception", "failed to parse multi get request. unknown field [%s]", kid.name)
		}
	}
	if stored && n.member("_source") == nil {
		w.filter = &sourceFilter{none: true}
	}
	return nil
}

func (c *call) appendWanted(w *wanted) {
	x, r, err := c.look(w)
	if err == nil {
		c.out = appendGet(c.out, x, w.id, r, w.filter)
		return
	}
	c.out = append(appendPlace(append(c.out, '{'), w.index, w.id), `,"error":`...)
	c.out = append(err.appendFull(c.out), '}')
}
