// Package engine starts real OpenSearch and Elasticsearch nodes for tests, from jars that Maven fetches. It is for tests on Unix
// systems only: its nodes have no durable data and small heaps, and end with the process that started them. They have no security, but for
// the one of StartSecured.
package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrStart reports that an engine did not come up. The error that wraps it holds the end of the engine's log.
var ErrStart = errors.New("engine did not start")

// startTimeout bounds a start whose context has no deadline. A node is up in about 5 s on two idle cores.
const startTimeout = 2 * time.Minute

// Options change how nodes are started. The zero value is what tests use.
type Options struct {
	// Heap is the size of the Java heap, fixed from the start, in the JVM's notation. Default "512m".
	Heap string
	// Peak lets the JVM compile for the highest speed, as in production. By default it compiles quickly: a node is up sooner and
	// leaves more of a small machine to the tests. Benchmarks want true.
	Peak bool
	// Settings are engine settings that win over the package's own.
	Settings map[string]string
}

// Engine is a running node. Its methods may be called by several goroutines at once.
type Engine struct {
	Kind    Kind
	Name    string // the node's name
	Cluster string // the cluster's name, unique on the machine
	URL     string // http://127.0.0.1:port, without a slash at the end
	Version string // as the engine says it: 3.8.0

	node *process // nil where another process started it
	user *url.Userinfo
}

// Start brings up one node with a cluster of its own and waits until it takes writes. Cancelling ctx ends the start, not a node
// that is up. The first start on a machine fetches the jars, which takes the minute or so that the network needs.
func Start(ctx context.Context, k Kind, o Options) (*Engine, error) {
	home, err := os.MkdirTemp("", "optimist-"+k.String()+"-")
	if err != nil {
		return nil, fmt.Errorf("folder for %s: %w", k.Title(), err)
	}
	p := plan{kind: k, options: o, home: home, cluster: filepath.Base(home), name: k.String()}
	e, err := p.start(ctx, "discovery.type=single-node", "http.port=0", "transport.port=0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	if err := e.await(ctx, "yellow", 1); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// Attach returns the engine at url, which somebody else started. Stop leaves it alone.
func Attach(ctx context.Context, k Kind, url string) (*Engine, error) {
	e := &Engine{Kind: k, URL: strings.TrimRight(url, "/")}
	if err := e.introduce(ctx); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", k.Title(), k.Env(), err)
	}
	return e, nil
}

// Stop ends the node and removes its data. A node that does not close in time is killed. Only the first call does anything.
func (e *Engine) Stop() error {
	if e.node == nil {
		return nil
	}
	e.node.terminate()
	return os.RemoveAll(e.node.home)
}

// Kill ends the node as kill -9 does and returns once it is gone. Its data stay until Stop.
func (e *Engine) Kill() {
	if e.node != nil {
		e.node.kill()
	}
}

// PID is the node's process, or 0 where another process started it.
func (e *Engine) PID() int {
	if e.node == nil {
		return 0
	}
	return e.node.cmd.Process.Pid
}

// Log is the path of the engine's log, or "" where another process started it.
func (e *Engine) Log() string {
	if e.node == nil {
		return ""
	}
	return e.node.log
}

// Answer is an engine's whole response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request straight to the engine. target is a path with its query, as it is to stand in the request line; a body
// goes as JSON. An answer of any status is no error.
func (e *Engine) Do(ctx context.Context, method, target, body string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.URL+target, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if password, secured := e.user.Password(); secured {
		req.SetBasicAuth(e.user.Username(), password)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return Answer{Status: res.StatusCode, Header: res.Header, Body: b}, err
}

// await returns once the cluster has the status and as many nodes.
func (e *Engine) await(ctx context.Context, status string, nodes int) error {
	target := fmt.Sprintf("/_cluster/health?wait_for_status=%s&wait_for_nodes=%d&timeout=60s", status, nodes)
	a, err := e.Do(ctx, http.MethodGet, target, "")
	if err != nil {
		return fmt.Errorf("%w: %s: health: %w", ErrStart, e.Kind.Title(), err)
	}
	if a.Status != http.StatusOK {
		return fmt.Errorf("%w: %s: health: %d %s", ErrStart, e.Kind.Title(), a.Status, a.Body)
	}
	return nil
}

// introduce asks the engine who it is.
func (e *Engine) introduce(ctx context.Context) error {
	a, err := e.Do(ctx, http.MethodGet, "/", "")
	if err != nil {
		return err
	}
	var root struct {
		Name    string
		Cluster string `json:"cluster_name"`
		Version struct{ Number string }
	}
	if err := json.Unmarshal(a.Body, &root); err != nil {
		return fmt.Errorf("GET / answered %d %s: %w", a.Status, bytes.TrimSpace(a.Body), err)
	}
	e.Name, e.Cluster, e.Version = root.Name, root.Cluster, root.Version.Number
	return nil
}

// plan is one node that is to be started, again after a kill.
type plan struct {
	kind    Kind
	options Options
	home    string
	cluster string
	name    string
}

// start runs the node until it answers. Settings that it is given win over the defaults, and those of the options over them.
func (p plan) start(ctx context.Context, settings ...string) (*Engine, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	k, err := prepare(ctx, p.kind)
	if err != nil {
		return nil, err
	}
	node, err := launch(p.command(k, settings), p.home)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrStart, p.kind.Title(), err)
	}
	e := &Engine{Kind: p.kind, node: node}
	address, err := node.ready(ctx)
	if err == nil {
		e.URL = "http://" + address
		err = e.introduce(ctx)
	}
	if err == nil && e.Cluster != p.cluster {
		err = fmt.Errorf("%s belongs to cluster %q", e.URL, e.Cluster)
	}
	if err != nil {
		node.kill()
		return nil, fmt.Errorf("%w: %s on JDK %d: %w\n%s", ErrStart, p.kind.Title(), k.jdk.version, err, node.logTail())
	}
	return e, nil
}

// command is the node's command line.
func (p plan) command(k kit, settings []string) []string {
	r := p.kind.recipe()
	heap := p.options.Heap
	if heap == "" {
		heap = "512m"
	}
	cmd := []string{k.jdk.tool("java"), "-Xms" + heap, "-Xmx" + heap, "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED"}
	if !p.options.Peak {
		cmd = append(cmd, "-XX:TieredStopAtLevel=1")
	}
	if k.jdk.version >= 23 {
		// Later JDKs forbid what the engines' netty does by default; the option is unknown before 23.
		cmd = append(cmd, "--sun-misc-unsafe-memory-access=allow")
	}
	cmd = append(cmd, r.jvm...)
	cmd = append(cmd, "-Des.path.home="+k.home(), "-cp", k.classPath(), r.main, p.home)
	cmd = append(cmd,
		"cluster.name="+p.cluster,
		"node.name="+p.name,
		"network.host=127.0.0.1",
		"node.processors=2",
		// A full disk of the machine is no matter of the tests.
		"cluster.routing.allocation.disk.threshold_enabled=false",
		// Tests make an index each, in a cluster that they share.
		"cluster.max_shards_per_node=20000",
	)
	if r.scripts {
		// Elasticsearch 7 takes 75 new scripts in 5 minutes by default.
		cmd = append(cmd, "script.max_compilations_rate=10000/1m")
	}
	cmd = append(cmd, r.settings...)
	cmd = append(cmd, settings...)
	own := make([]string, 0, len(p.options.Settings))
	for key, value := range p.options.Settings {
		own = append(own, key+"="+value)
	}
	slices.Sort(own)
	return append(cmd, own...)
}
