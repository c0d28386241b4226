package embedded

import (
	"cmp"
	"strings"

	"optimist/internal/glob"
)

// mediaType is a Content-Type or an Accept as far as the engine understands it.
type mediaType struct {
	format  string // json, yaml, cbor or smile; "" if the type isn't known
	version string // the release that compatible-with names
}

// formats are those of the media types that the engine knows.
var formats = map[string]string{
	"application/json": "json", "application/vnd.elasticsearch+json": "json",
	"application/x-ndjson": "json", "application/vnd.elasticsearch+x-ndjson": "json",
	"application/yaml": "yaml", "application/vnd.elasticsearch+yaml": "yaml",
	"application/cbor": "cbor", "application/vnd.elasticsearch+cbor": "cbor",
	"application/smile": "smile", "application/vnd.elasticsearch+smile": "smile",
}

func parseMediaType(s string) mediaType {
	s, _, _ = strings.Cut(s, ",") // if a client accepts several, the first counts
	typ, rest, _ := strings.Cut(s, ";")
	m := mediaType{format: formats[strings.ToLower(strings.TrimSpace(typ))]}
	for p := range strings.SplitSeq(rest, ";") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(p), "compatible-with="); ok {
			m.version = v
		}
	}
	return m
}

// media refuses bodies that the engine can't read and formats that it can't write, and settles the answer's type.
func (c *call) media() *Error {
	accept := parseMediaType(c.req.Accept)
	content := parseMediaType(c.req.ContentType)
	hasBody := len(c.req.Body) > 0
	if hasBody && content.format == "" {
		return &Error{Status: 406, Plain: true, Reason: "Content-Type header [" + c.req.ContentType + "] is not supported"}
	}
	if err := c.versions(accept, content, hasBody); err != nil {
		return err
	}
	if f := c.params.get("format"); f == "yaml" || f == "cbor" || f == "smile" {
		accept.format = f
	}
	if accept.format != "" && accept.format != "json" || hasBody && content.format != "json" {
		return &Error{Status: 406, Type: "illegal_argument_exception", Reason: "the embedded in-memory engine speaks JSON only"}
	}
	if accept.version != "" {
		c.mediaType = "application/vnd.elasticsearch+json;compatible-with=" + accept.version
	}
	return nil
}

// versions applies the engine's rules for compatible-with: the engine must know the release, and both headers must name the same one.
func (c *call) versions(accept, content mediaType, hasBody bool) *Error {
	bad := func(reason string) *Error {
		e := badRequest("media_type_header_exception", "Invalid media-type value on headers [Accept, Content-Type]")
		e.cause = &Error{Type: "status_exception", Reason: reason}
		return e
	}
	for _, h := range []struct{ name, version, value string }{{"Accept", accept.version, c.req.Accept}, {"Content-Type", content.version, c.req.ContentType}} {
		if h.version != "" && h.version != "8" && h.version != "9" {
			return bad(h.name + " version must be either version 9 or 8, but found " + h.version + ". " + h.name + "=" + h.value)
		}
	}
	if hasBody && accept.version != content.version {
		return bad("A compatible version is required on both Content-Type and Accept headers if either one has requested a compatible version and the " +
			"compatible versions must match. Accept=" + cmp.Or(c.req.Accept, "null") + ", Content-Type=" + cmp.Or(c.req.ContentType, "null"))
	}
	return nil
}

// shape applies the parameters that change the form of every answer: filter_path and pretty.
func (c *call) shape(failed bool) *Error {
	if c.resp.ContentType != "application/json" {
		return nil
	}
	pretty := c.flag("pretty", false)
	if c.bad != nil && !failed {
		return c.bad
	}
	paths := c.params.get("filter_path")
	if failed {
		paths = "" // errors are always served whole
	}
	if !pretty && paths == "" || len(c.out) == 0 {
		return nil
	}
	if paths != "" && !c.whole {
		filter := glob.ParseFilter(paths)
		c.out = filter.Append(nil, c.out)
	}
	if !pretty {
		c.out = rewritten(c.out)
	} else if n, _, broken := parseJSON(c.out); broken == nil {
		c.out = append(appendValue(nil, n, "\n"), '\n')
	}
	return nil
}
