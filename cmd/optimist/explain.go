package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"optimist/internal/explain"
	"optimist/internal/ruletest"
)

type explainCmd struct {
	Method string `arg:"" help:"Method of the write: PUT, POST, PATCH or DELETE."`
	Path   string `arg:"" help:"Path of the write, such as /shop/_doc/1."`

	Config  string   `help:"Configuration file with the rules. Default: the built-in rule." env:"OPTIMIST_CONFIG" placeholder:"FILE"`
	Body    string   `help:"What the client sends: a file, - for standard input, or JSON that begins with { or [." short:"d" placeholder:"F"`
	Base    string   `help:"What the client has read, in the same forms; null: there was none. Default: it has not read." placeholder:"F"`
	Current string   `help:"The document that is stored now, in the same forms, or null. Default: the base." placeholder:"F"`
	Header  []string `help:"A header of the request: 'Name: value'. Repeat it for more." short:"H" sep:"none" placeholder:"'K: V'"`
	User    string   `help:"The user's name, in Basic credentials without a password." placeholder:"NAME"`
	Now     string   `help:"The time that rules see, such as 2026-01-01T00:00:00Z. Default: the real time." placeholder:"TIME"`
	JSON    bool     `name:"json" help:"Print the account as JSON."`
	Proxy   string   `help:"Ask the running optimist at this URL, about its own documents." placeholder:"URL"`
	CAFile  string   `name:"ca-file" help:"With --proxy: file with the authority of its TLS certificate." placeholder:"FILE"`

	CertFile string `help:"With --proxy: the client's certificate, where the port asks for one." placeholder:"FILE"`
	KeyFile  string `help:"The certificate's key." placeholder:"FILE"`
}

// Help is the command's manual, beyond its flags.
func (explainCmd) Help() string {
	return `It shows which rule takes the write, the write's base, the client's change, the merge's decision for each path, the
steps of the transform, and the request that would go to the engine with its document.

Offline it runs the write on an engine in memory. With --proxy it makes a dry run on a running optimist (the header
Optimist-Dry-Run: true). The dry run uses the stored documents, and writes nothing.`
}

// explainTimeout is how long an optimist that is asked may take.
const explainTimeout = 30 * time.Second

// Run explains and prints.
func (c *explainCmd) Run(p *process) error {
	q, err := c.question()
	if err != nil {
		return err
	}
	account, raw, err := c.ask(p, q)
	switch {
	case errors.Is(err, ruletest.ErrQuestion):
		return usageError("optimist explain: %v", err)
	case err != nil:
		return err
	case c.JSON:
		var out bytes.Buffer
		if err := json.Indent(&out, bytes.TrimSpace(raw), "", "  "); err != nil {
			return err
		}
		out.WriteByte('\n')
		_, err = out.WriteTo(p.stdout)
		return err
	}
	_, err = io.WriteString(p.stdout, ruletest.AccountText(account))
	return err
}

func (c *explainCmd) ask(p *process, q *ruletest.Question) (*explain.Account, []byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, explainTimeout)
	defer cancel()
	if c.Proxy != "" {
		u, err := url.Parse(c.Proxy)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return nil, nil, usageError("optimist explain: %q is not a URL of an optimist; write it as in http://127.0.0.1:9280", c.Proxy)
		case c.Base+c.Current+c.Now != "":
			return nil, nil, usageError("optimist explain: with --proxy, optimist uses its own documents and the real time; " +
				"--base, --current and --now are for offline")
		}
		conf, err := trusting("--ca-file", c.CAFile)
		if err == nil {
			err = showing(conf, "--", c.CertFile, c.KeyFile)
		}
		if err != nil {
			return nil, nil, usageError("optimist explain: %v", err)
		}
		account, raw, err := ruletest.Online(ctx, strings.TrimRight(c.Proxy, "/"), conf, q)
		if errors.Is(err, ruletest.ErrNoAnswer) {
			err = fmt.Errorf("%w%s", err, adviceFor(u.Scheme+"://", "--ca-file", "--proxy", err))
		}
		return account, raw, err
	}
	if c.CAFile+c.CertFile+c.KeyFile != "" {
		return nil, nil, usageError("optimist explain: --ca-file, --cert-file and --key-file are for --proxy")
	}
	cfg, rules, err := (&settings{Config: c.Config}).load()
	if err != nil {
		return nil, nil, badConfig(p.stderr, err, exitFailed)
	}
	return ruletest.Offline(ctx, cfg, rules, q)
}

// question puts the command line together.
func (c *explainCmd) question() (*ruletest.Question, error) {
	q := &ruletest.Question{Method: strings.ToUpper(c.Method), Target: c.Path, Header: http.Header{}}
	if c.Now != "" {
		var err error
		if q.Now, err = time.Parse(time.RFC3339Nano, c.Now); err != nil {
			return nil, usageError("optimist explain: --now: %q is not a time; write it as in 2026-01-01T00:00:00Z", c.Now)
		}
	}
	if err := c.headers(q.Header); err != nil {
		return nil, err
	}
	// If the headers say that the body isn't JSON, it stays as it is.
	isJSON := q.Header.Get("Content-Encoding") == "" && strings.Contains(strings.ToLower(cmp.Or(q.Header.Get("Content-Type"), "json")), "json")
	stdin := 0
	texts := []struct {
		flag, text string
		into       *[]byte
		json       bool
	}{{"--body", c.Body, &q.Body, isJSON}, {"--base", c.Base, &q.Base, true}, {"--current", c.Current, &q.Current, true}}
	for _, f := range texts {
		if f.text == "-" {
			if stdin++; stdin > 1 {
				return nil, usageError("optimist explain: only one of --body, --base and --current can be standard input")
			}
		}
		var err error
		if *f.into, err = readText(f.text); err != nil {
			return nil, usageError("optimist explain: %s: %v", f.flag, err)
		}
	}
	for _, f := range texts {
		if f.json {
			if err := checkJSON(f.flag, f.text, *f.into); err != nil {
				return nil, err
			}
		}
	}
	return q, nil
}

// headers reads the flags of headers.
func (c *explainCmd) headers(into http.Header) error {
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return usageError("optimist explain: --header: %q is not a header; write it as in 'X-User: anna'", h)
		}
		into.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	switch {
	case c.User == "":
	case c.Proxy != "":
		return usageError("optimist explain: with --proxy, credentials are real ones; give them by --header 'Authorization: …'")
	case into.Get("Authorization") != "":
		return usageError("optimist explain: --user and the header Authorization both name the client; leave one of them out")
	case !ruletest.UserName(c.User):
		return usageError("optimist explain: --user: %q is not a user's name: it can't have a colon or a control character in it", c.User)
	default:
		(&http.Request{Header: into}).SetBasicAuth(c.User, "")
	}
	return nil
}

// checkJSON tells where what a flag stands for ends to be JSON. Nothing at all is none that is wrong.
func checkJSON(flag, source string, text []byte) error {
	var syntax *json.SyntaxError
	if text == nil || !errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) {
		return nil
	}
	place, read := source, text[:max(syntax.Offset-1, 0)] // what stands before the byte that is wrong
	if source == "-" || inline(source) {
		place = flag
	}
	if syntax.Error() == "unexpected end of JSON input" {
		read = text
	}
	line := bytes.Count(read, []byte("\n"))
	column := utf8.RuneCount(read[bytes.LastIndexByte(read, '\n')+1:])
	return usageError("optimist explain: %s:%d:%d: not JSON: %v", place, line+1, column+1, syntax)
}

// readText is what a flag stands for: JSON, a file's content, or standard input. Nothing is nil.
func readText(text string) ([]byte, error) {
	switch {
	case text == "":
		return nil, nil
	case text == "-":
		return io.ReadAll(os.Stdin)
	case inline(text):
		return []byte(text), nil
	}
	data, err := os.ReadFile(text)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %q; JSON itself begins with { or [", text)
	}
	return data, err
}

// inline reports whether a flag holds JSON itself.
func inline(text string) bool {
	return text == "null" || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}
