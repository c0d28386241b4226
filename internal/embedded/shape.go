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
func (c *call) shape(failed bool) *Error {
	if c.resp.ContentType != "application/json" {
		return nil
	}
	pretty, err := c.params.flag("pretty", false)
	if err != nil {
		return err
	}
	paths := c.params.list("filter_path")
	if failed {
		paths = nil // errors are always served whole
	}
	if !pretty && len(paths) == 0 || len(c.out) == 0 {
		return nil
	}
	n, _, broken := parseJSON(c.out)
	if broken != nil {
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

// filterPaths applies filter_path; a path with a minus in front excludes.
func filterPaths(n *node, paths []string) node {
	var include, exclude []string
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, "-"); ok {
			exclude = append(exclude, rest)
		} else {
			include = append(include, p)
		}
	}
	return newPathFilter(include, exclude).apply(n)
}
