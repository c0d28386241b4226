// Package doctor asks a cluster which features will work through optimist, and which won't.
//
// It writes nothing and changes nothing. It sees only what its own credentials may see; clients with others may see more or less.
// Its report holds for the moment.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/internal/jsontext"
	"optimist/internal/rule"
	"optimist/internal/upstream"
)

// Node is one node to ask, by itself.
type Node struct {
	URL  string
	Doer es.Doer // *upstream.Set is one
}

// Options are what Examine needs. Nodes and Rules are required.
type Options struct {
	Nodes   []Node
	Rules   *rule.Set     // which indices matter
	Auth    bool          // credentials are sent
	Timeout time.Duration // of each question. Default 10s.
}

// Level says how a finding is to be taken.
type Level uint8

// The levels, from good to bad.
const (
	OK   Level = iota
	Note       // worth knowing
	Warn       // something works less well than it could
	Fail       // something won't work
)

// String is the level as the report shows it.
func (l Level) String() string { return [...]string{"ok", "note", "warn", "FAIL"}[l] }

// Finding is one thing that was found out.
type Finding struct {
	Level Level
	Topic string // one or two words
	Text  string
}

// Index is an index that a rule takes and that isn't guarded in full, or takes no writes.
type Index struct {
	Level Level
	Name  string
	Rule  string
	Does  string // what optimist does there
	Why   string
}

// Report is what Examine found out.
type Report struct {
	Findings []Finding
	Indices  []Index // those not guarded in full, or without writes
	Taken    int     // indices that rules take
	Seen     int     // indices that were looked at; -1 if they couldn't be
}

// Failed reports whether something won't work.
func (r *Report) Failed() bool { return r.worst() == Fail }

func (r *Report) worst() Level {
	level := OK
	for _, f := range r.Findings {
		level = max(level, f.Level)
	}
	for _, i := range r.Indices {
		level = max(level, i.Level)
	}
	return level
}

func (r *Report) add(l Level, topic, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{l, topic, fmt.Sprintf(format, args...)})
}

// examination is one run of Examine.
type examination struct {
	Options
	ctx    context.Context
	report *Report
	node   Node    // the first that answers: all further questions go there
	hello  welcome // its GET /
}

// answer is what a node said.
type answer struct {
	status  int
	body    gjson.Result // the zero value if it isn't JSON
	product bool         // it has X-Elastic-Product
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// refused reports whether the credentials were not enough.
func (a answer) refused() bool {
	return a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
}

// ask sends one request, which changes nothing.
func (e *examination) ask(to es.Doer, req esapi.Request) (answer, error) {
	ctx, cancel := context.WithTimeout(e.ctx, e.Timeout)
	defer cancel()
	got, err := es.Ask(ctx, to, req, es.Way{Caller: es.Caller{Own: true}, Reads: true})
	if err != nil {
		if ctx.Err() != nil && e.ctx.Err() == nil {
			return answer{}, overdue(e.Timeout)
		}
		return answer{}, reason(err)
	}
	a := answer{status: got.Status, product: got.Product}
	if jsontext.Valid(got.Body) {
		a.body = gjson.ParseBytes(got.Body)
	}
	return a, nil
}

// get is a request that the library doesn't have.
type get string

// Do sends it.
func (g get) Do(ctx context.Context, transport esapi.Transport) (*esapi.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(g), nil)
	if err != nil {
		return nil, err
	}
	res, err := transport.Perform(req) //nolint:bodyclose // the caller closes the body of the answer that it is handed
	if err != nil {
		return nil, err
	}
	return &esapi.Response{StatusCode: res.StatusCode, Header: res.Header, Body: res.Body}, nil
}

// overdue reports an answer that didn't come within that time.
type overdue time.Duration

func (o overdue) Error() string { return "no answer within " + time.Duration(o).String() }

// Is reports whether target is what contexts report then.
func (overdue) Is(target error) bool { return target == context.DeadlineExceeded }

// advice is what may be wrong with the URL of a node, where err is why it doesn't answer; nil: it answers that it can't read the request.
func advice(url string, err error) string {
	if c := new(upstream.ConnectError); errors.As(err, &c) && c.Reason == upstream.Refused {
		return ": nothing listens at this address. Start the engine, or name another URL"
	}
	if strings.HasPrefix(url, "http://") {
		return upstream.PlainAdvice(err)
	}
	return ""
}

// reason takes the node's URL off an error, since the finding names it.
func reason(err error) error {
	var up *upstream.Error
	if errors.As(err, &up) && up.Err != nil {
		return up.Err
	}
	return err
}

// welcome is what GET / says.
type welcome struct {
	product     string // Elasticsearch, OpenSearch, or what it calls itself
	number      string
	major       int
	minor       int
	cluster     string
	clusterUUID string
	header      bool // X-Elastic-Product
}
