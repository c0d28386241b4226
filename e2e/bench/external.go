package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const nginxConf = `daemon off;
worker_processes %d;
error_log stderr crit;
pid %s/nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/f;
  uwsgi_temp_path %[2]s/u;
  scgi_temp_path %[2]s/s;
  keepalive_requests 100000000;
  upstream engine { server %s; keepalive 256; keepalive_requests 100000000; }
  server {
    listen %s;
    location / {
      proxy_pass http://engine;
      proxy_http_version 1.1;
      client_max_body_size 0;
      proxy_request_buffering off;
      proxy_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }
  }
}
`

const haproxyConf = `global
  maxconn 4096
  nbthread %d
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend door
  bind %s
  default_backend engine
backend engine
  server stub %s
`

// startNginx starts nginx with as many workers as processors, connections to the upstream kept alive.
func startNginx(ctx context.Context, binary, dir, upstream string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	conf := fmt.Sprintf(nginxConf, processors(), dir, upstream, addr)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return startCommand(ctx, addr, binary, "-p", dir, "-c", file)
}

// startHAProxy starts HAProxy with as many threads as processors.
func startHAProxy(ctx context.Context, binary, dir, upstream string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "haproxy.cfg")
	conf := fmt.Sprintf(haproxyConf, processors(), addr, upstream)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return startCommand(ctx, addr, binary, "-db", "-q", "-f", file)
}

// freeAddr finds a loopback port that is free now. Somebody else may take it before it is used; the start then fails.
func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

func waitForPort(ctx context.Context, addr string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on %s: %w", addr, err)
		case <-tick.C:
		}
	}
}

// find looks for a program on the path and where distributions put servers.
func find(name string) (string, bool) {
	if p, err := exec.LookPath(name); err == nil {
		return p, true
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return p, true
		}
	}
	return "", false
}
