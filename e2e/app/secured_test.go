package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// usersPassword is that of every user whom these tests make: the plugin refuses weak ones.
const usersPassword = "Zq7!mVbr-92kLw"

// secured is an OpenSearch with its security plugin, and an optimist before it. The users are named as their roles.
type secured struct {
	t      *testing.T
	engine *engine.Engine
	proxy  *optimist.Process
}

// The roles. Nobody but optimist may ask about the cluster, or what an index is. Its role is the one of docs/deploying.md.
var roles = map[string]string{
	"optimist": `{"cluster_permissions": ["cluster_monitor", "cluster_composite_ops", "cluster_manage_index_templates"],
 "index_permissions": [
   {"index_patterns": ["*"], "allowed_actions": ["indices:admin/get"]},
   {"index_patterns": ["optimist-*"], "allowed_actions": ["indices_all"]}]}`,
	"app":      onShop(``),
	"field":    onShop(`"fls":["~secret"],`),
	"masked":   onShop(`"masked_fields":["secret"],`),
	"document": onShop(`"dls":"{\"term\":{\"public\":true}}",`),
	"reader":   strings.Replace(onShop(``), "crud", "read", 1),
	"stranger": strings.Replace(onShop(``), "shop*", "other*", 1),
}

func onShop(more string) string {
	return `{"cluster_permissions":["cluster_composite_ops"],"index_permissions":[{"index_patterns":["shop*"],` + more +
		`"allowed_actions":["crud","create_index"]}]}`
}

// TestTheSecurityPluginDecidesWhatClientsMay, and whether optimist may merge for them.
func TestTheSecurityPluginDecidesWhatClientsMay(t *testing.T) {
	engine.Long(t)
	e, err := engine.StartSecured(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop() })
	s := &secured{t: t, engine: e}
	for name, role := range roles {
		s.admin("PUT", "/_plugins/_security/api/internalusers/"+name, `{"password":"`+usersPassword+`","backend_roles":["`+name+`"]}`)
		s.admin("PUT", "/_plugins/_security/api/roles/"+name, role)
		s.admin("PUT", "/_plugins/_security/api/rolesmapping/"+name, `{"backend_roles":["`+name+`"]}`)
	}
	own := "upstream: {auth: {basic_file: " + s.basicFile("optimist") + "}}\n"
	for name, c := range map[string]struct {
		config string
		test   func(*secured)
	}{
		"doctor":                    {own, (*secured).isExamined},
		"merges":                    {own, (*secured).mergesForWhoeverSeesDocumentsWhole},
		"merges for nobody else":    {own, (*secured).guardsForOthers},
		"guards without privileges": {"", (*secured).guardsWithoutPrivileges},
		"indices of its own":        {own, (*secured).keepsIndices},
		"refusals":                  {own, (*secured).passesRefusals},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: "rules:\n- {name: all}\n" + c.config, Race: true})
			c.test(&secured{t: t, engine: e, proxy: proxy})
		})
	}
}

// basicFile is a file with a user's credentials.
func (s *secured) basicFile(user string) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), user)
	if err := os.WriteFile(file, []byte(user+":"+usersPassword), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// admin does a request as the engine's administrator.
func (s *secured) admin(method, target, body string) string {
	s.t.Helper()
	a, err := s.engine.Do(s.t.Context(), method, target, body)
	if err != nil || a.Status/100 != 2 {
		s.t.Fatalf("%s %s: %d %s %v", method, target, a.Status, a.Body, err)
	}
	return string(a.Body)
}

// as does a request through optimist as a user.
func (s *secured) as(user, method, target, body string) answer {
	s.t.Helper()
	return s.ask(s.proxy.URL, user, method, target, body)
}

func (s *secured) ask(url, user, method, target, body string) answer {
	s.t.Helper()
	header := http.Header{"Authorization": {basic(user)}}
	if method == "PATCH" {
		header.Set("Content-Type", "application/merge-patch+json")
	}
	a, err := do(s.t.Context(), method, url+target, body, header)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+usersPassword))
}

// source is a document as a user sees it through optimist.
func (s *secured) source(user, target string) map[string]any {
	s.t.Helper()
	a := s.as(user, "GET", target, "")
	var got struct {
		Source map[string]any `json:"_source"`
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
		s.t.Fatalf("%s reads: %d %s %v", user, a.status, a.body, err)
	}
	return got.Source
}

func (s *secured) isExamined() {
	binary, err := optimist.Binary(false)
	if err != nil {
		s.t.Fatal(err)
	}
	doctor := exec.CommandContext(s.t.Context(), binary, "doctor", "--upstream", s.engine.URL, "--basic-file", s.basicFile("optimist"))
	if out, err := doctor.CombinedOutput(); err != nil || !strings.Contains(string(out), "the user is optimist") {
		s.t.Errorf("%v\n%s", err, out)
	}
}

// keepsIndices: of locks, and of what was answered to an Idempotency-Key.
func (s *secured) keepsIndices() {
	for _, lock := range []string{"/_lock/global/a", "/shop/_lock/doc/locked", "/shop/_lock/tree/a/b"} {
		if a := s.as("app", "PUT", lock, `{"owner":"o","ttl":"1m"}`); a.status != http.StatusCreated {
			s.t.Errorf("%s: %d %s", lock, a.status, a.body)
		}
	}
	if a := s.as("app", "GET", "/_lock", ""); a.status != http.StatusOK || !strings.Contains(a.body, "/shop/_lock/tree/a/b") {
		s.t.Errorf("the locks: %d %s", a.status, a.body)
	}
	header := http.Header{"Authorization": {basic("app")}, "Idempotency-Key": {"once"}}
	first := request(s.t, http.StatusCreated, "PUT", s.proxy.URL+"/shop/_doc/once", `{"n":1}`, header)
	if again := request(s.t, http.StatusCreated, "PUT", s.proxy.URL+"/shop/_doc/once", `{"n":1}`, header); again.body != first.body {
		s.t.Errorf("%s, and again %s", first.body, again.body)
	}
	if log := s.proxy.Log(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		s.t.Error(log)
	}
}

func (s *secured) mergesForWhoeverSeesDocumentsWhole() {
	const whole = "/shop/_doc/whole"
	s.admin("PUT", whole, `{"log":[]}`)
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for n := range 10 {
				seen := s.source("app", whole)
				seen["log"] = append(seen["log"].([]any), fmt.Sprintf("%d-%d", w, n))
				body, _ := json.Marshal(seen) // of what was JSON
				if a := s.as("app", "PUT", whole, string(body)); a.status != http.StatusOK {
					s.t.Errorf("%d %s [%s]", a.status, a.body, a.outcome())
				}
			}
		})
	}
	workers.Wait()
	if got := len(s.source("app", whole)["log"].([]any)); got != 80 {
		s.t.Errorf("%d of 80 changes are there", got)
	}
}

// guardsForOthers: what a client sees of a document must not be written in the place of the whole.
func (s *secured) guardsForOthers() {
	const shown = "/shop/_doc/shown" // behind a filter, reads see what the last refresh has seen
	for _, user := range []string{"field", "masked", "document"} {
		s.admin("PUT", shown+"?refresh=true", `{"n":1,"public":true,"secret":"hidden"}`)
		if seen := s.source(user, shown); user == "field" && seen["secret"] != nil {
			s.t.Errorf("%s sees %v", user, seen)
		}
		s.admin("PUT", shown+"?refresh=true", `{"n":2,"public":true,"secret":"hidden"}`)
		a := s.as(user, "PUT", shown, `{"n":1,"public":true,"by":"`+user+`"}`)
		if a.status != http.StatusConflict || !strings.Contains(a.outcome(), "reason=filtered") {
			s.t.Errorf("%s: %d %s [%s]", user, a.status, a.body, a.outcome())
		}
		if a := s.as(user, "PATCH", shown, `{"n":3}`); a.status != http.StatusBadRequest || !strings.Contains(a.outcome(), "reason=filtered") {
			s.t.Errorf("%s patches: %d %s [%s]", user, a.status, a.body, a.outcome())
		}
		if got := s.source("app", shown); got["n"] != 2.0 || got["secret"] != "hidden" {
			s.t.Errorf("%s: stored %v", user, got)
		}
	}
}

// guardsWithoutPrivileges: an application's credentials seldom allow what optimist has to ask.
func (s *secured) guardsWithoutPrivileges() {
	const target = "/shop/_doc/unasked"
	s.admin("PUT", target, `{"n":1}`)
	s.source("app", target)
	s.admin("PUT", target, `{"n":2}`)
	a := s.as("app", "PUT", target, `{"n":1,"a":1}`)
	if a.status == http.StatusOK || !strings.HasPrefix(a.outcome(), "guarded") && !strings.HasPrefix(a.outcome(), "unknown") {
		s.t.Errorf("%d %s [%s]", a.status, a.body, a.outcome())
	}
	if got := s.source("app", target); got["n"] != 2.0 || got["a"] != nil {
		s.t.Errorf("stored %v", got)
	}
}

// passesRefusals: of single writes, and of items.
func (s *secured) passesRefusals() {
	s.admin("PUT", "/shop/_doc/1", `{"n":1}`)
	const bulk = `{"create":{"_index":"shop","_id":"1"}}
{"n":3}
{"update":{"_index":"other","_id":"1"}}
{"doc":{"n":3}}
{"delete":{"_index":"none","_id":"1"}}
`
	for _, user := range []string{"app", "field", "reader", "stranger", "nobody"} {
		for _, r := range [][3]string{
			{"GET", "/shop/_doc/1", ""}, {"GET", "/other/_doc/1", ""}, {"PUT", "/other/_doc/1", `{"n":2}`}, {"DELETE", "/other/_doc/1", ""},
			{"POST", "/other/_update/1", `{"doc":{"n":2}}`}, {"POST", "/_mget", `{"docs":[{"_index":"other","_id":"1"}]}`},
			{"POST", "/_bulk", bulk}, {"POST", "/_bulk", ""}, {"GET", "/_cluster/health", ""},
		} {
			want, got := s.ask(s.engine.URL, user, r[0], r[1], r[2]), s.as(user, r[0], r[1], r[2])
			if user == "stranger" && strings.HasPrefix(r[1], "/other/") {
				continue // who may write there: each write is another
			}
			if want, got := each.ReplaceAllString(want.body, ""), each.ReplaceAllString(got.body, ""); got != want {
				s.t.Errorf("%s %v: %s\ndirect: %s", user, r, got, want)
			}
			if got.status != want.status {
				s.t.Errorf("%s %v: %d, direct %d", user, r, got.status, want.status)
			}
		}
	}
}
