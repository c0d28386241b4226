package main

import (
	"context"
	"strings"
)

// contenders lists the proxies that can be measured here, and names those whose programs aren't installed.
func contenders(only string) (list []contender, missing []string) {
	self := func(command string) func(context.Context, string, string) (*process, error) {
		return func(ctx context.Context, _, upstream string) (*process, error) {
			return startSelf(ctx, command, "--upstream", upstream)
		}
	}
	program := func(mode string) func(context.Context, string, string) (*process, error) {
		return func(ctx context.Context, dir, upstream string) (*process, error) {
			return startOptimist(ctx, dir, upstream, mode, "")
		}
	}
	all := []contender{
		{"optimist serve --mode off", program("off")},
		{"optimist, proxy.Server alone", self("serve-proxy")},
		{baseline, self("serve-fasthttp")},
		{"httputil.ReverseProxy", self("serve-reverseproxy")},
	}
	external := []struct {
		program string
		start   func(ctx context.Context, binary, dir, upstream string) (*process, error)
	}{{"nginx", startNginx}, {"haproxy", startHAProxy}}
	for _, e := range external {
		binary, ok := find(e.program)
		if !ok {
			missing = append(missing, e.program)
			continue
		}
		all = append(all, contender{e.program, func(ctx context.Context, dir, upstream string) (*process, error) {
			return e.start(ctx, binary, dir, upstream)
		}})
	}
	for _, c := range all {
		if only == "" || c.name == baseline || strings.Contains(c.name, only) {
			list = append(list, c)
		}
	}
	return list, missing
}
