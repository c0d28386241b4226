package doctor

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimist/internal/config"
	"optimist/internal/enginetest"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// canned is a node with prepared answers, by method and path, and a 404 for all else.
type canned enginetest.Canned

type reply = enginetest.Answer

func (c canned) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	if res, err := enginetest.Canned(c).Answer(ctx, r); res != nil || err != nil {
		return res, err
	}
	return enginetest.Response(404, `{"error":{"type":"x"},"status":404}`), nil
}

// product is what makes official clients take an engine for Elasticsearch.
var product = http.Header{"X-Elastic-Product": {"Elasticsearch"}}

const es8 = `{"name":"n1","cluster_name":"prod","cluster_uuid":"u1","version":{"number":"8.15.0"}}`

// healthy is an Elasticsearch 8 where everything works.
func healthy() canned {
	return canned{
		"GET /":                                {Status: 200, Body: es8, Header: product},
		"GET /_cluster/health":                 {Status: 200, Body: `{"status":"green"}`},
		"GET /_cluster/state/metadata/none":    {Status: 200, Body: `{}`},
		"GET /_nodes/http":                     {Status: 200, Body: `{"nodes":{"a":{"http":{"publish_address":"x:1"}}}}`},
		"POST /_security/user/_has_privileges": {Status: 200, Body: `{"username":"ops","has_all_requested":true,"cluster":{"monitor":true},"index":{"*":{"view_index_metadata":true}}}`},
		"POST /_scripts/painless/_execute":     {Status: 200, Body: `{"result":"2"}`},
		"GET /_all":                            {Status: 200, Body: `{"shop":{"settings":{"index":{"uuid":"a"}}}}`},
		"GET /_plugins/_security/authinfo":     {Status: 404},
	}
}

// with is healthy with other answers in places.
func with(changes canned) canned {
	c := healthy()
	for k, v := range changes {
		c[k] = v
	}
	return c
}

func examine(t *testing.T, yaml string, auth bool, nodes ...es.Doer) *Report {
	t.Helper()
	c, err := config.Parse("t.yaml", []byte(yaml), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rule.FromConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Rules: rules, Auth: auth}
	for i, n := range nodes {
		o.Nodes = append(o.Nodes, Node{URL: "http://es" + string(rune('1'+i)) + ":9200", Doer: n})
	}
	r := Examine(t.Context(), o)
	for i := range r.Findings { // the time that an answer took isn't the same twice
		if r.Findings[i].Topic == "reachable" && r.Findings[i].Level == OK {
			r.Findings[i].Text = r.Findings[i].Text[:strings.LastIndex(r.Findings[i].Text, ",")] + ", 3ms"
		}
	}
	return r
}

// A node may answer with anything: brackets without end overflow the stack of a reader that goes down by recursion.
func TestAnswerNestedWithoutEndIsNoJSON(t *testing.T) {
	deep := reply{Status: 200, Body: strings.Repeat("[", 8<<20)}
	r := examine(t, "upstream: {urls: [http://es1:9200]}", false, with(canned{"GET /": deep}))
	if len(r.Findings) == 0 || r.Findings[0].Level == OK {
		t.Errorf("%+v", r.Findings)
	}
}

// TestReports holds whole reports to golden files, and the verdict to what is said here.
func TestReports(t *testing.T) {
	everyIndex := `{
		"plain":{"settings":{"index":{"uuid":"a"}},"aliases":{"plain-now":{}}},
		"noseq":{"settings":{"index":{"uuid":"b","disable_sequence_numbers":"true"}}},
		"tsdb":{"settings":{"index":{"uuid":"c","mode":"time_series"}},"defaults":{"index":{"disable_sequence_numbers":"true"}}},
		"synthetic":{"settings":{"index":{"uuid":"d","mapping":{"source":{"mode":"synthetic"}}}}},
		"oldsynthetic":{"settings":{"index":{"uuid":"d"}},"mappings":{"_source":{"mode":"synthetic"}}},
		"logsdb":{"settings":{"index":{"uuid":"d","mode":"logsdb"}}},
		"logsdbstored":{"settings":{"index":{"uuid":"d","mode":"logsdb","mapping":{"source":{"mode":"stored"}}}}},
		"derived":{"settings":{"index":{"uuid":"d","derived_source":{"enabled":"true"}}}},
		"disabled":{"settings":{"index":{"uuid":"e"}},"mappings":{"_source":{"enabled":false}}},
		"filtered":{"settings":{"index":{"uuid":"f"}},"mappings":{"_source":{"excludes":["secret"],"includes":["a*"]}}},
		"typed":{"settings":{"index":{"uuid":"f"}},"mappings":{"doc":{"_source":{"excludes":["secret"]}}}},
		"piped":{"settings":{"index":{"uuid":"g","default_pipeline":"enrich"}}},
		"nopipe":{"settings":{"index":{"uuid":"h","default_pipeline":"_none","final_pipeline":"_none"}}},
		".hidden":{"settings":{"index":{"uuid":"i","disable_sequence_numbers":"true"}}},
		".ds-events-1":{"settings":{"index":{"uuid":"j"}},"data_stream":"events"},
		".ds-events-2":{"settings":{"index":{"uuid":"k"}},"data_stream":"events"}}`
	all := with(canned{"GET /_all": {Status: 200, Body: everyIndex}})
	for name, c := range map[string]struct {
		config string
		auth   bool
		nodes  []es.Doer
		failed bool
	}{
		"healthy":     {nodes: []es.Doer{healthy()}},
		"every_index": {nodes: []es.Doer{all}, failed: true},
		"rules_choose": {nodes: []es.Doer{all}, config: `
rules:
  - {name: pipes, match: {index: [piped]}, pipeline: rerun}
  - {name: streams, match: {index: [events]}}
  - {name: alias, match: {index: [plain-now], users: [a]}}
  - {name: off, match: {index: [noseq]}, mode: 'off'}
`},
		"opensearch": {nodes: []es.Doer{canned{
			"GET /":                             {Status: 200, Body: `{"cluster_name":"os","cluster_uuid":"u","version":{"distribution":"opensearch","number":"2.19.1"}}`},
			"GET /_cluster/health":              {Status: 200, Body: `{"status":"red"}`},
			"GET /_cluster/state/metadata/none": {Status: 200, Body: `{}`},
			"GET /_nodes/http":                  {Status: 200, Body: `{"nodes":{"a":{},"b":{},"c":{}}}`},
			"GET /_plugins/_security/authinfo":  {Status: 200, Body: `{"user_name":"app","roles":["own_index","writer"]}`},
			"GET /_all":                         {Status: 200, Body: `{}`},
		}}},
		"few_privileges": {auth: true, nodes: []es.Doer{with(canned{
			"GET /_cluster/health":                 {Status: 403},
			"GET /_cluster/state/metadata/none":    {Status: 403},
			"GET /_nodes/http":                     {Status: 403},
			"POST /_security/user/_has_privileges": {Status: 200, Body: `{"username":"app","has_all_requested":false,"cluster":{"monitor":false},"index":{"*":{"view_index_metadata":false}}}`},
			"POST /_scripts/painless/_execute":     {Status: 403},
			"GET /_all":                            {Status: 403},
		})}},
		"no_credentials":    {failed: true, nodes: []es.Doer{canned{"GET /": {Status: 401}}}},
		"wrong_credentials": {failed: true, auth: true, nodes: []es.Doer{canned{"GET /": {Status: 401}}}},
		"no_monitor":        {failed: true, auth: true, nodes: []es.Doer{canned{"GET /": {Status: 403}}}},
		"open_greeting":     {failed: true, auth: true, nodes: []es.Doer{with(canned{"POST /_security/user/_has_privileges": {Status: 401}})}},
		"unreachable": {failed: true, nodes: []es.Doer{canned{"GET /": {Err: &upstream.Error{Node: "x", Class: upstream.NotSent,
			Err: &upstream.ConnectError{Reason: upstream.Refused, Err: errors.New("dial tcp: refused")}}}}}},
		"not_an_engine": {failed: true, nodes: []es.Doer{canned{"GET /": {Status: 200, Body: "<html>"}}}},
		"two_clusters": {failed: true, nodes: []es.Doer{healthy(),
			canned{"GET /": {Status: 200, Body: `{"cluster_name":"test","cluster_uuid":"u2","version":{"number":"8.15.0"}}`}}}},
		"one_of_two": {failed: true, nodes: []es.Doer{canned{"GET /": {Status: 502, Body: "bad gateway"}}, healthy()}},
		"too_old":    {failed: true, nodes: []es.Doer{with(canned{"GET /": {Status: 200, Body: `{"version":{"number":"5.6.16"}}`}})}},
		"untested":   {nodes: []es.Doer{with(canned{"GET /": {Status: 200, Body: `{"cluster_uuid":"u","cluster_name":"c","version":{"number":"10.0.0"}}`}})}},
		"no_security": {nodes: []es.Doer{with(canned{"POST /_security/user/_has_privileges": {Status: 405},
			"POST /_scripts/painless/_execute": {Status: 400, Body: `{"error":{}}`}})}},
	} {
		t.Run(name, func(t *testing.T) {
			r := examine(t, c.config, c.auth, c.nodes...)
			if r.Failed() != c.failed {
				t.Errorf("failed is %v, want %v", r.Failed(), c.failed)
			}
			var b strings.Builder
			if err := r.Write(&b); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("%s (-want +got); if that is meant: go test ./internal/doctor -update\n%s", file, d)
			}
		})
	}
}

// silent never answers.
type silent struct{}

func (silent) Do(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestASilentNodeIsGivenUp(t *testing.T) {
	r := Examine(t.Context(), Options{Nodes: []Node{{URL: "http://es1:9200", Doer: silent{}}}, Timeout: time.Millisecond})
	if !r.Failed() || !strings.Contains(r.Findings[0].Text, "no answer within 1ms") {
		t.Errorf("got %+v", r)
	}
}

func TestManyIndicesAreCut(t *testing.T) {
	r := &Report{}
	for range maxListed + 7 {
		r.Indices = append(r.Indices, Index{Level: Warn, Name: "x"})
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil || !strings.Contains(b.String(), "and 7 more") || strings.Count(b.String(), "\nwarn") != maxListed {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// What the engine says of itself stands in the report: it must not clear the screen, nor write a line that looks like one of the report's.
func TestAnEngineWritesNothingButWordsIntoTheReport(t *testing.T) {
	const evil = `\u001b[2J\n\nok  indices  all guarded in full\r\t\u202e`
	r := examine(t, "", false, with(canned{
		"GET /":                                {Status: 200, Body: `{"cluster_name":"` + evil + `","cluster_uuid":"` + evil + `","version":{"number":"` + evil + `","distribution":"` + evil + `"}}`},
		"GET /_cluster/health":                 {Status: 200, Body: `{"status":"` + evil + `"}`},
		"POST /_security/user/_has_privileges": {Status: 200, Body: `{"username":"` + evil + `","has_all_requested":true}`},
		"GET /_all":                            {Status: 200, Body: `{"x` + evil + `":{"settings":{"index":{"default_pipeline":"` + evil + `"}}}}`},
	}))
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }) || strings.Contains(text, "\nok  indices") {
		t.Errorf("%q", text)
	}
}

// asked records the questions.
type asked struct {
	es.Doer
	list *[]string
}

func (a asked) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	*a.list = append(*a.list, string(r.Target))
	return a.Doer.Do(ctx, r)
}

// The judgement is es.Partial's. What it looks at has to be in the answer: without these keys all vectors seemed to be in _source.
func TestDoctorAsksForAllThatDecidesWhetherSourceIsWhole(t *testing.T) {
	var list []string
	vectors := `{"v":{"settings":{"index":{"uuid":"a","version":{"created":"9033000"}}},"mappings":{"properties":{"o":{"properties":{"v":{"type":"dense_vector"}}}}}}}`
	r := examine(t, "", false, asked{with(canned{"GET /_all": {Status: 200, Body: vectors}}), &list})
	if len(r.Indices) != 1 || !strings.Contains(r.Indices[0].Why, "_source without vectors") {
		t.Errorf("%+v", r.Indices)
	}
	question := ""
	for _, target := range list {
		if strings.HasPrefix(target, "/_all") {
			question, _ = url.QueryUnescape(target)
		}
	}
	for _, key := range []string{"*.settings.index.version.created", "*.settings.index.mapping.exclude_source_vectors", "*.mappings.**.type"} {
		if !strings.Contains(question, key) {
			t.Errorf("it doesn't ask for %s: %s", key, question)
		}
	}
}

// another is an optimist in front of a node.
type another struct{ canned }

func (a another) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	if wire.Value(r.Fields, "optimist-dry-run") != nil {
		return enginetest.Response(400, `{"error":{"type":"invalid_dry_run"},"status":400}`), nil
	}
	return a.canned.Do(ctx, r)
}

func TestAnotherOptimistIsNoEngine(t *testing.T) {
	for want, node := range map[bool]es.Doer{true: another{healthy()}, false: healthy()} {
		found := false
		for _, f := range examine(t, "version: 1", true, node).Findings {
			found = found || f.Level == Warn && strings.Contains(f.Text, "http://es1:9200 is another optimist")
		}
		if found != want {
			t.Errorf("it is another optimist: %v, want %v", found, want)
		}
	}
}
