package rules_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// patchCase is one case of the files in testdata, whose heads say what its keys mean.
type patchCase struct {
	Name    string  `yaml:"name"`
	Doc     string  `yaml:"doc"`
	Patch   string  `yaml:"patch"`
	Want    *string `yaml:"want"`
	Refused string  `yaml:"refused"`
	Says    string  `yaml:"says"`
}

func patchCases(t *testing.T, file string, least int) (cases []patchCase) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = yaml.Load(b, &cases, yaml.WithKnownFields())
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < least {
		t.Fatalf("%d cases, and there should be at least %d", len(cases), least)
	}
	for _, c := range cases {
		if (c.Want == nil) == (c.Refused == "") {
			t.Fatalf("%s: want and refused are one too many, or too few", c.Name)
		}
	}
	return cases
}

// TestPatchesAreWhatTheirRFCsSay sends the cases of all kinds of patches, each to a document of its own: JSON Patch (RFC 6902), JSON Merge
// Patch (RFC 7396), and the operations of rules, which have no RFC.
func TestPatchesAreWhatTheirRFCsSay(t *testing.T) {
	kinds := map[string][]patchCase{
		jsonPatch:  patchCases(t, "json-patch.yaml", 150),
		mergePatch: patchCases(t, "merge-patch.yaml", 30),
		operations: patchCases(t, "operations.yaml", 80),
	}
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, "")
		for media, cases := range kinds {
			before := makeAll(t, e, index, media, cases)
			answers := patchAll(t, p, index, media, cases)
			for i, c := range cases {
				after := e.stored(t, c.path(index, media, i))
				t.Run(media+"/"+c.Name, func(t *testing.T) { c.judge(t, answers[i], before[i], after, index, c.id(media, i)) })
			}
		}
	})
}

// id is the document of a case.
func (c *patchCase) id(media string, i int) string {
	return media[len("application/"):] + "-" + strconv.Itoa(i)
}

func (c *patchCase) path(index, media string, i int) string {
	return "/" + index + "/_doc/" + c.id(media, i)
}

// makeAll stores the documents of all cases, and returns them as they are stored.
func makeAll(t *testing.T, e target, index, media string, cases []patchCase) []revision {
	t.Helper()
	var body strings.Builder
	for i, c := range cases {
		fmt.Fprintf(&body, "{\"create\":{\"_id\":%q}}\n%s\n", c.id(media, i), c.Doc)
	}
	items := e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_bulk", body.String()).get("items").Array()
	made := make([]revision, len(cases))
	for i, c := range cases {
		item := items[i].Get("create")
		if item.Get("status").Int() != http.StatusCreated {
			t.Fatalf("%s: %s", c.Name, item.Raw)
		}
		made[i] = revision{c.Doc, item.Get("_seq_no").Int(), item.Get("_version").Int()}
	}
	return made
}

// patchAll sends the patches of all cases, some at a time: the engine waits for its disk with each.
func patchAll(t *testing.T, p target, index, media string, cases []patchCase) []answer {
	t.Helper()
	answers := make([]answer, len(cases))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		c := p.own(t)
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(cases); i = int(next.Add(1)) - 1 {
				answers[i] = c.try(t, http.MethodPatch, cases[i].path(index, media, i), cases[i].Patch, "Content-Type", media, "X-Team", `red "1"`)
			}
		})
	}
	wg.Wait()
	return answers
}

func (c *patchCase) judge(t *testing.T, a answer, before, after revision, index, id string) {
	t.Helper()
	if c.Refused != "" {
		status, kind, _ := strings.Cut(c.Refused, " ")
		n, _ := strconv.Atoi(status)
		refused(t, a, n, kind, c.Says)
		if after != before {
			t.Errorf("refused, and there is %+v where %+v was", after, before)
		}
		return
	}
	want := strings.NewReplacer("{index}", index, "{id}", id).Replace(*c.Want)
	result, outcome, writes := "updated", "guarded;attempts=1", int64(1)
	if want == c.Doc {
		result, outcome, writes = "noop", "guarded;attempts=0", 0
	}
	if a.status != http.StatusOK || a.get("result").Str != result || !strings.HasPrefix(a.outcome(), outcome) {
		t.Errorf("got %d [%s] %s, want %s", a.status, a.outcome(), a.body, result)
	}
	if after.source != want {
		t.Errorf("got  %s\nwant %s", after.source, want)
	}
	if a.told(after.source) != after || after.version-before.version != writes {
		t.Errorf("%+v became %+v, and the answer is %s", before, after, a.body)
	}
}

// TestNowIsTheTimeOfTheProxy looks at what a table can't: a time that is another with every run.
func TestNowIsTheTimeOfTheProxy(t *testing.T) {
	e := inMemory(t)
	p, path := optimistFor(t, e, ""), "/"+e.index(t)+"/_doc/1"
	e.send(t, http.StatusCreated, http.MethodPut, path, `{}`)
	began := time.Now().Truncate(time.Second)
	a := p.patch(t, http.StatusOK, operations, path+"?_source=true", `[{"op":"now","path":"/text"},{"op":"now","path":"/ms","format":"epoch_millis"},
		{"op":"now","path":"/s","format":"epoch_second"},{"op":"max","path":"/latest","value":{"from":"now"}}]`)
	ended := time.Now()
	doc := a.get("get._source")
	text, err := time.Parse("2006-01-02T15:04:05.000Z", doc.Get("text").Str)
	if err != nil {
		t.Error(err)
	}
	for name, at := range map[string]time.Time{"text": text, "ms": time.UnixMilli(doc.Get("ms").Int()), "s": time.Unix(doc.Get("s").Int(), 0)} {
		if at.Before(began) || at.After(ended) {
			t.Errorf("%s is %v, and it was between %v and %v", name, at, began, ended)
		}
	}
	if doc.Get("latest").Str == "" || doc.Get("ms").Raw != fmt.Sprint(doc.Get("ms").Int()) {
		t.Errorf("got %s", doc.Raw)
	}
}

// TestPatchByPost is for clients that can't send a PATCH.
func TestPatchByPost(t *testing.T) {
	e := inMemory(t)
	p, index := optimistFor(t, e, ""), e.index(t)
	e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1", `{"n":1}`)
	for media, body := range map[string]string{
		jsonPatch:  `[{"op":"add","path":"/a","value":1}]`,
		mergePatch: `{"b":2}`,
		operations: `[{"op":"increment","path":"/n","value":2}]`,
	} {
		a := p.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_patch/1", body, "Content-Type", media)
		if a.get("result").Str != "updated" {
			t.Errorf("%s: %s", media, a.body)
		}
	}
	doc := e.send(t, http.StatusOK, http.MethodGet, "/"+index+"/_source/1", "")
	if doc.get("n").Int() != 3 || doc.get("a").Int() != 1 || doc.get("b").Int() != 2 {
		t.Errorf("got %s", doc.body)
	}
}
