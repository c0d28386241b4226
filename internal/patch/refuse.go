package patch

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"optimist/internal/intent"
	"optimist/internal/respond"
	"optimist/internal/wire"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// withHint says of an operation that only rules have what it would have to be sent as.
func withHint(err error) error {
	var e *edit.PatchError
	if errors.As(err, &e) {
		if a, unknown := edit.ParseAction(e.Op); unknown == nil && a > edit.OpTest && a != edit.OpRefuse {
			return fmt.Errorf("%w; %s has it", err, MediaSteps)
		}
	}
	return err
}

func readSteps(body []byte, l tree.Limits) (intent.Edit, error) {
	list, err := edit.ParseSteps(body, l)
	if err != nil {
		return nil, err
	}
	t, err := edit.NewTransformer(list, l)
	return intent.Steps{Transformer: t}, err
}

// mediaFor is the Content-Type of a write whose answer is to be of the Accept's form: Elasticsearch wants both to ask for the
// same.
func mediaFor(accept []byte) []byte {
	if len(accept) > len(mediaEngine) && wire.EqualFold(accept[:len(mediaEngine)], mediaEngine) {
		first, _, _ := bytes.Cut(accept, []byte(","))
		return first
	}
	return respond.JSON.Value
}

// contentOf is the media type of a body, in lower case and without parameters; coded says that it isn't sent plainly.
func contentOf(fields []wire.Field) (media string, coded bool) {
	v, _, _ := strings.Cut(string(wire.Value(fields, "content-type")), ";")
	return strings.ToLower(strings.TrimSpace(v)), wire.Value(fields, "content-encoding") != nil
}

// Illegal is the engine's refusal of a request that doesn't say what may be done.
func Illegal(format string, args ...any) *respond.Answer {
	return respond.Error(http.StatusBadRequest, "illegal_argument_exception", fmt.Sprintf(format, args...))
}

// unsupportedMedia names what would have been understood, as RFC 5789 has it.
func unsupportedMedia(what string) *respond.Answer {
	a := respond.Error(http.StatusUnsupportedMediaType, "media_type_header_exception", what+" is not a patch: send "+acceptPatch)
	a.Fields = append(a.Fields, wire.Field{Name: []byte("Accept-Patch"), Value: []byte(acceptPatch)})
	return a
}

// badPatch is the answer to a body that is no patch.
func badPatch(err error) *respond.Answer {
	var syntax *tree.SyntaxError
	if errors.As(err, &syntax) {
		return respond.Error(http.StatusBadRequest, "x_content_parse_exception", err.Error())
	}
	return respond.Error(http.StatusBadRequest, "parsing_exception", err.Error())
}
