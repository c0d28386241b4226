package es

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/budget"
	"optimist/internal/coding"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// Way is how a request travels.
type Way struct {
	Caller
	// Node is the URL of the node that is asked, if it is alive. Empty: any.
	Node string
	// Reads says that the request changes nothing, though its method isn't GET or HEAD: after a lost answer it is sent once more.
	Reads bool
	// Timeout bounds the time until the answer is here. Zero: the context alone does.
	Timeout time.Duration
}

// Answer is the engine's. Its body is a copy.
type Answer struct {
	Status    int
	Body      []byte
	Product   bool         // it has X-Elastic-Product
	Node      string       // the URL of the node that answered
	Challenge []wire.Field // of a 401 to a client's credentials
}

// IsMissing reports whether the engine says that there is no such document or index, to read or to delete. A 404 of something in front of
// the engine says nothing.
func (a *Answer) IsMissing() bool {
	if a.Status != http.StatusNotFound {
		return false
	}
	it := ParseItem(a.Body)
	return string(it.Result) == "not_found" || NoDocument(a.Body)
}

// IsNoIndex reports whether the engine says that there is no index. A gateway's 404 doesn't say so.
func (a *Answer) IsNoIndex() bool {
	return a.Status == http.StatusNotFound && saysNoIndex(gjson.GetBytes(a.Body, "error"))
}

// Ask sends a request of the library's over our own upstream, with our connections and our choice of node, and without the
// library's retries. The library writes names and ids into the path as they are: they have to be passed through Segment. The
// errors are those of the upstream. If a write of a document gets a success without a result, which isn't the engine's
// acknowledgement, its answer is lost.
func Ask(ctx context.Context, up Doer, req esapi.Request, way Way) (Answer, error) {
	a, err := ask(ctx, up, req, way)
	if err == nil && a.Status/100 == 2 && writesDocument(req) && len(ParseItem(a.Body).Result) == 0 {
		return Answer{}, &upstream.Error{Class: upstream.Lost, Sent: true, Err: ErrNoAcknowledgement}
	}
	return a, err
}

// ask is Ask for a question, whatever it is asked by.
func ask(ctx context.Context, up Doer, req esapi.Request, way Way) (Answer, error) {
	t := transport{up: up, way: way}
	if _, err := req.Do(ctx, &t); err != nil {
		return Answer{}, err
	}
	return t.answer, nil
}

// ErrNoAcknowledgement reports a success that something between optimist and the engine may have made up: the outcome of the write is
// unknown.
var ErrNoAcknowledgement = errors.New("the answer to the write is a success, and isn't the engine's acknowledgement")

func writesDocument(req esapi.Request) bool {
	switch req.(type) {
	case esapi.IndexRequest, esapi.CreateRequest, esapi.UpdateRequest, esapi.DeleteRequest:
		return true
	}
	return false
}

// Challenge is a copy of the fields by which an answer of 401 says how a client can say who it is: many clients send no credentials
// before they have seen one.
func Challenge(fields []wire.Field) (challenge []wire.Field) {
	for _, f := range fields {
		if wire.EqualFold(f.Name, "www-authenticate") {
			challenge = append(challenge, wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
		}
	}
	return challenge
}

// Segment is a name or an id (decoded) as a segment of a path.
func Segment(name string) string { return string(uri.AppendSegment(nil, name)) }

// maxAnswer bounds what a compressed answer becomes, in bytes.
const maxAnswer = 128 << 20

const productField = "X-Elastic-Product"

// transport lets one of the library's requests travel over our upstream. The library makes nothing of the answer: it stays here.
type transport struct {
	up     Doer
	way    Way
	answer Answer
}

var (
	acceptJSON  = wire.Field{Name: []byte("Accept"), Value: []byte("application/json")}
	contentJSON = wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")}
)

// Perform sends the request.
func (t *transport) Perform(req *http.Request) (*http.Response, error) {
	fields := make([]wire.Field, 0, 2+len(t.way.Fields))
	r := upstream.Request{
		Method:     req.Method,
		Target:     t.way.target(req.URL.RequestURI()),
		Fields:     t.way.appendFields(append(fields, acceptJSON)),
		Own:        t.way.Own,
		Client:     t.way.Client,
		Node:       t.way.Node,
		Timeout:    t.way.Timeout,
		Repeatable: t.way.Reads || req.Method == http.MethodGet || req.Method == http.MethodHead,
	}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.Body = body
		r.Fields = append(r.Fields, contentJSON)
	}
	res, err := t.up.Do(req.Context(), &r)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	// optimist asks for no coding. A gateway may use one all the same.
	body, err := coding.DecodeIn(budget.Of(req.Context()), res.Payload, res.Get("Content-Encoding"), maxAnswer)
	if err != nil && res.Status/100 == 2 { // the status of any other answer says enough
		return nil, &upstream.Error{Node: res.Node, Class: unreadable(err), Sent: true, Err: err}
	}
	t.answer = Answer{Status: res.Status, Body: bytes.Clone(body), Product: len(res.Get(productField)) > 0, Node: res.Node}
	if res.Status == http.StatusUnauthorized && !t.way.Own {
		t.answer.Challenge = Challenge(res.Fields)
	}
	return &http.Response{StatusCode: res.Status, Body: http.NoBody}, nil
}

// unreadable is the class of an answer whose coding can't be taken off. Who asks for less at once gets an answer that isn't too large.
func unreadable(err error) upstream.Class {
	if errors.Is(err, coding.ErrUnknown) || errors.Is(err, coding.ErrMalformed) {
		return upstream.Lost
	}
	return upstream.TooLarge
}
