package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"optimist/e2e/optimist"
	"optimist/internal/upstream"
	"optimist/proxy"
)

// upstreamFlag reads the one flag that every forwarder takes.
func upstreamFlag(name string, args []string) (string, error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	upstream := fs.String("upstream", "", "host:port of the upstream")
	if err := fs.Parse(args); err != nil {
		return "", err
	}
	if *upstream == "" {
		return "", errors.New(name + ": --upstream is missing")
	}
	return *upstream, nil
}

// serveProxy is proxy.Server with nothing to intercept.
func serveProxy(ctx context.Context, args []string, out io.Writer) error {
	up, err := upstreamFlag("serve-proxy", args)
	if err != nil {
		return err
	}
	set, err := upstream.New(upstream.Config{URLs: []string{"http://" + up}})
	if err != nil {
		return err
	}
	defer set.Close()
	server, err := proxy.New(proxy.Options{Upstream: set})
	if err != nil {
		return err
	}
	defer server.Close()
	ln, err := listen(ctx, out)
	if err != nil {
		return err
	}
	return unlessDone(ctx, server.Serve(ln))
}

// unlessDone is err, or nil where the end was asked for.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// startOptimist runs the real program, built from this tree.
func startOptimist(ctx context.Context, dir, upstream, mode, config string) (*process, error) {
	return startBuild(ctx, dir, upstream, optimist.Options{Args: []string{"--mode", mode}, Config: config})
}

// startBuild runs the real program as o says: with Binary, one that was built before.
func startBuild(ctx context.Context, dir, upstream string, o optimist.Options) (*process, error) {
	o.Upstream = []string{"http://" + upstream}
	p, err := optimist.Run(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return processOf(p), nil
}

func processOf(p *optimist.Process) *process {
	return &process{addr: hostOf(p.URL), pid: p.PID(), end: func() { _ = p.Stop() }}
}

// hostOf is the host and port of a base URL.
func hostOf(url string) string { return strings.TrimPrefix(url, "http://") }

// serveFasthttp is the least that a forwarder on fasthttp can do: Do with the incoming request and answer. It is what
// the targets are relative to, and it is wrong in the ways that the traps name: it normalises targets and adds headers.
func serveFasthttp(ctx context.Context, args []string, out io.Writer) error {
	upstream, err := upstreamFlag("serve-fasthttp", args)
	if err != nil {
		return err
	}
	client := &fasthttp.HostClient{Addr: upstream, MaxConns: 4096, MaxIdemponentCallAttempts: 1}
	server := &fasthttp.Server{Handler: func(rc *fasthttp.RequestCtx) {
		if err := client.Do(&rc.Request, &rc.Response); err != nil {
			rc.Error(err.Error(), fasthttp.StatusBadGateway)
		}
	}}
	ln, err := listen(ctx, out)
	if err != nil {
		return err
	}
	return unlessDone(ctx, server.Serve(ln))
}

// serveReverseProxy is the standard library's proxy with a connection pool that is large enough.
func serveReverseProxy(ctx context.Context, args []string, out io.Writer) error {
	upstream, err := upstreamFlag("serve-reverseproxy", args)
	if err != nil {
		return err
	}
	target := &url.URL{Scheme: "http", Host: upstream}
	rp := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 4096, IdleConnTimeout: time.Minute, DisableCompression: true},
	}
	ln, err := listen(ctx, out)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: rp, ReadHeaderTimeout: 10 * time.Second}
	return unlessDone(ctx, server.Serve(ln))
}
