package doctor

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/es"
)

// reach asks every node who it is. The first that tells is asked all the rest.
func (e *examination) reach() {
	for _, n := range e.Nodes {
		begun := time.Now()
		a, err := e.ask(n.Doer, esapi.InfoRequest{})
		took := time.Since(begun).Round(time.Millisecond)
		switch {
		case err != nil:
			e.report.add(Fail, "reachable", "%s: %s%s", n.URL, err, advice(n.URL, err))
		case a.status == http.StatusUnauthorized && e.Auth:
			e.report.add(Fail, "reachable", "%s refuses the credentials (401): the file of upstream.auth or of the flag is wrong", n.URL)
		case a.refused() && e.Auth:
			e.report.add(Fail, "reachable", "%s doesn't allow GET / with the credentials (%d): they need the cluster privilege monitor",
				n.URL, a.status)
		case a.refused():
			e.report.add(Fail, "reachable", "%s asks for credentials (%d): name a file with --api-key-file, --basic-file or --bearer-file",
				n.URL, a.status)
		case a.status == http.StatusBadRequest:
			e.report.add(Fail, "reachable", "%s answers GET / with 400%s", n.URL, advice(n.URL, nil))
		case a.status >= http.StatusInternalServerError:
			e.report.add(Fail, "reachable", "%s answers GET / with %d: the engine isn't ready, or what stands before it", n.URL, a.status)
		case !a.ok() || !a.body.Get("version.number").Exists():
			e.report.add(Fail, "reachable", "%s answers GET / with %d, and not like an engine: perhaps the URL names another server",
				n.URL, a.status)
		default:
			w := greet(a)
			e.report.add(OK, "reachable", "%s: %s %s, cluster %q, %s", n.URL, w.product, w.number, w.cluster, took)
			e.sameCluster(n, w)
			e.another(n)
		}
	}
}

// another finds out whether a node is another optimist.
func (e *examination) another(n Node) {
	ctx, cancel := context.WithTimeout(e.ctx, e.Timeout)
	defer cancel()
	if is, err := es.IsOptimist(ctx, n.Doer, ""); err == nil && is {
		e.report.add(Warn, "upstream", "%s is another optimist: both carry out the steps of their rules, and the second one takes all "+
			"clients for one; name the engine", n.URL)
	}
}

func (e *examination) sameCluster(n Node, w welcome) {
	if e.node.Doer == nil {
		e.node, e.hello = n, w
		return
	}
	if w.clusterUUID != e.hello.clusterUUID {
		e.report.add(Fail, "one cluster", "%s and %s belong to different clusters; optimist treats all nodes as one cluster", e.node.URL, n.URL)
	}
}

func greet(a answer) welcome {
	v := a.body.Get("version")
	w := welcome{product: "Elasticsearch", number: v.Get("number").String(), cluster: a.body.Get("cluster_name").String(),
		clusterUUID: a.body.Get("cluster_uuid").String(), header: a.product}
	switch d := v.Get("distribution").String(); d {
	case "":
	case "opensearch":
		w.product = "OpenSearch"
	default:
		w.product = d
	}
	major, rest, _ := strings.Cut(w.number, ".")
	minor, _, _ := strings.Cut(rest, ".")
	w.major, _ = strconv.Atoi(major) // 0 if it is none: then it is an unknown version below
	w.minor, _ = strconv.Atoi(minor)
	return w
}

// version says whether the engine is one that optimist is tested with.
func (e *examination) version() {
	w := e.hello
	switch {
	case w.product == "OpenSearch" && w.major >= 2 && w.major <= 3,
		w.product == "Elasticsearch" && (w.major == 7 && w.minor >= 10 || w.major == 8 || w.major == 9):
		e.report.add(OK, "version", "%s %s is supported", w.product, w.number)
	case w.product == "Elasticsearch" && (w.major < 6 || w.major == 6 && w.minor < 7):
		e.report.add(Fail, "version", "%s %s has no if_seq_no; nothing can be guarded", w.product, w.number)
	case w.product == "optimist-embedded":
		e.report.add(Note, "version", "this is optimist's engine in memory, not a database")
	default:
		e.report.add(Warn, "version", "%s %s: optimist is tested with Elasticsearch 7.10 to 9 and OpenSearch 2 and 3", w.product, w.number)
	}
	switch {
	case w.header:
		e.report.add(OK, "product", "answers carry X-Elastic-Product; official clients take them through optimist")
	case w.product == "Elasticsearch" && (w.major >= 8 || w.major == 7 && w.minor >= 14):
		e.report.add(Warn, "product",
			"answers carry no X-Elastic-Product; something in between removes it, and official clients will refuse them")
	}
}

// cluster asks for what would hold up any write.
func (e *examination) cluster() {
	if a, err := e.ask(e.node.Doer, esapi.ClusterHealthRequest{FilterPath: []string{"status"}}); err == nil && a.ok() {
		switch status := a.body.Get("status").String(); status {
		case "red":
			e.report.add(Warn, "health", "the cluster is red: writes to indices without their primary shard wait and fail")
		default:
			e.report.add(OK, "health", "the cluster is %s", status)
		}
	} else {
		e.report.add(Note, "health", "unknown: %s", cause(a, err))
	}
	local := true
	state := esapi.ClusterStateRequest{Metric: []string{"metadata"}, Index: []string{"none"}, Local: &local, FilterPath: []string{"metadata"}}
	if a, err := e.ask(e.node.Doer, state); err == nil && a.ok() {
		e.report.add(OK, "primaries", "optimist can find out whether the primary changed during a conflict")
	} else {
		e.report.add(Warn, "primaries", "optimist can't find out whether the primary changed during a conflict: %s; "+
			"sums and list edits get a 504 if their conflict takes 10 ms or more", cause(a, err))
	}
	a, err := e.ask(e.node.Doer, esapi.NodesInfoRequest{Metric: []string{"http"}, FilterPath: []string{"nodes.*.http.publish_address"}})
	if err != nil || !a.ok() {
		return
	}
	if n := len(a.body.Get("nodes").Map()); n > len(e.Nodes) {
		e.report.add(Note, "nodes", "the cluster has %d nodes that take requests, and %d are named; optimist doesn't look for others",
			n, len(e.Nodes))
	}
}

// privileges tells what the credentials may see, as far as the engine says.
func (e *examination) privileges() {
	if e.hello.product == "OpenSearch" {
		a, err := e.ask(e.node.Doer, get("/_plugins/_security/authinfo"))
		switch {
		case err == nil && a.ok():
			e.report.add(OK, "privileges", "the user is %s; its roles: %s", a.body.Get("user_name"), list(a.body.Get("roles").String()))
		case err == nil && a.refused():
			e.report.add(e.worseWithAuth(), "privileges", "the security plugin refuses the credentials (%d)", a.status)
		default:
			e.report.add(Note, "privileges", "there is no security plugin: the engine checks nobody's identity")
		}
		return
	}
	question := `{"cluster":["monitor"],"index":[{"names":["*"],"privileges":["view_index_metadata"]}]}`
	a, err := e.ask(e.node.Doer, esapi.SecurityHasPrivilegesRequest{Body: strings.NewReader(question)})
	switch {
	case err == nil && a.ok():
		e.hasPrivileges(a)
	case err == nil && a.status == http.StatusUnauthorized:
		e.report.add(e.worseWithAuth(), "privileges", "the engine refuses the credentials (401)")
	case err == nil && !a.refused():
		e.report.add(Note, "privileges", "security is missing or switched off: the engine checks nobody's identity")
	default:
		e.report.add(Note, "privileges", "unknown: %s", cause(a, err))
	}
}

func (e *examination) hasPrivileges(a answer) {
	user := a.body.Get("username").String()
	if a.body.Get("has_all_requested").Bool() {
		e.report.add(OK, "privileges", "%s may look at the cluster and all indices", user)
		return
	}
	if !a.body.Get("cluster.monitor").Bool() {
		e.report.add(Warn, "privileges", "%s lacks the cluster privilege monitor: doctor can't check health and scripts", user)
	}
	if !a.body.Get(`index.\*.view_index_metadata`).Bool() {
		e.report.add(Warn, "privileges",
			"%s lacks view_index_metadata on some indices: optimist can't see what can be merged there; conflicts are a 409", user)
	}
}

// worseWithAuth is the level of refused credentials: without any of its own, optimist asks with each client's.
func (e *examination) worseWithAuth() Level {
	if e.Auth {
		return Fail
	}
	return Warn
}

// scripts tries Painless, which _update with scripts needs in the engine.
func (e *examination) scripts() {
	script := strings.NewReader(`{"script":{"lang":"painless","source":"return 1 + 1"}}`)
	a, err := e.ask(e.node.Doer, esapi.ScriptsPainlessExecuteRequest{Body: script})
	switch {
	case err == nil && a.ok() && a.body.Get("result").String() == "2":
		e.report.add(OK, "scripts", "Painless runs")
	case err == nil && a.refused():
		e.report.add(Note, "scripts", "unknown: the credentials don't allow it (%d)", a.status)
	case err != nil:
		e.report.add(Note, "scripts", "unknown: %s", err)
	default:
		e.report.add(Note, "scripts", "the engine has no Painless: _update with a script fails, with optimist as without")
	}
}

// cause says why a question has no answer.
func cause(a answer, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case a.refused():
		return "the credentials don't allow it (" + strconv.Itoa(a.status) + ")"
	}
	return "the engine answers " + strconv.Itoa(a.status)
}

// list makes a list of a JSON array of words.
func list(raw string) string {
	return strings.NewReplacer(`"`, "", "[", "", "]", "", ",", ", ").Replace(raw)
}
