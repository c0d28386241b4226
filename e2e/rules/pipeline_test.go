package rules_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"optimist/e2e/engine"
)

// piped are rules for two indices with an ingest pipeline, which differ in what they make of a conflict there.
const piped = `rules:
- name: guarded
  match: {index: [%s]}
  transform: &steps
    - {op: add, path: /by, value: optimist}
    - {op: increment, path: /edits, value: 1}
- name: again
  match: {index: [%s]}
  pipeline: rerun
  transform: *steps
`

// counting is a pipeline that tells what it found of the steps, and how often it ran over the document.
const counting = `{"processors":[{"script":{"source":"ctx.found = ctx.by; ctx.runs = (ctx.runs == null ? 0 : ctx.runs) + 1"}}]}`

// inPipelines makes two indices with that pipeline, guarded and again, and optimist in front, with what the test puts between.
func inPipelines(t *testing.T, e target, mid func(t *testing.T, e target) target) (p target, guarded, again string) {
	t.Helper()
	guarded, again = e.index(t), e.index(t)
	e.send(t, http.StatusOK, http.MethodPut, "/_ingest/pipeline/"+guarded, counting)
	for _, index := range []string{guarded, again} {
		e.send(t, http.StatusOK, http.MethodPut, "/"+index+"/_settings", `{"index":{"default_pipeline":"`+guarded+`"}}`)
	}
	t.Cleanup(func() {
		for _, index := range []string{guarded, again} { // one in use isn't deleted
			_, _ = e.do(context.Background(), http.MethodDelete, "/"+index, "", nil)
		}
		_, _ = e.do(context.Background(), http.MethodDelete, "/_ingest/pipeline/"+guarded, "", nil)
	})
	if mid != nil {
		e = mid(t, e)
	}
	return optimistFor(t, e, fmt.Sprintf(piped, guarded, again)), guarded, again
}

func eachPiping(t *testing.T, test func(t *testing.T, e target)) {
	t.Helper()
	engine.Each(t, engine.Scripted(), func(t *testing.T, e *engine.Engine) { test(t, target{name: e.Kind.String(), url: e.URL}) })
}

// holds fails the test unless the document at a path has these members.
func holds(t *testing.T, e target, path string, members ...string) {
	t.Helper()
	source := e.stored(t, path).source
	for _, m := range members {
		if !strings.Contains(source, m) {
			t.Errorf("%s isn't in %s", m, source)
		}
	}
}

func TestStepsRunBeforeThePipeline(t *testing.T) {
	eachPiping(t, func(t *testing.T, e target) {
		p, guarded, again := inPipelines(t, e, nil)
		for _, index := range []string{guarded, again} {
			path := "/" + index + "/_doc/1"
			p.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
			holds(t, e, path, `"n":1`, `"by":"optimist"`, `"edits":1`, `"found":"optimist"`, `"runs":1`)

			// Of a document that was read, with what the pipeline made of it, the steps count on, and so does the pipeline.
			p.send(t, http.StatusOK, http.MethodGet, path, "", "Optimist-Session", "reader")
			a := p.send(t, http.StatusOK, http.MethodPut, path, `{"n":2,"edits":1,"runs":1}`, "Optimist-Session", "reader")
			holds(t, e, path, `"n":2`, `"edits":2`, `"found":"optimist"`, `"runs":2`)
			if !strings.HasPrefix(a.outcome(), "guarded") || strings.Contains(a.outcome(), "untransformed") {
				t.Errorf("the outcome is %s", a.outcome())
			}
		}
	})
}

func TestThePipelineRunsOverWhatAPatchLeaves(t *testing.T) {
	eachPiping(t, func(t *testing.T, e target) {
		p, guarded, again := inPipelines(t, e, nil)
		for _, index := range []string{guarded, again} {
			path := "/" + index + "/_doc/1"
			p.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
			p.patch(t, http.StatusOK, operations, path, `[{"op":"increment","path":"/n","value":1}]`)
			holds(t, e, path, `"n":2`, `"edits":2`, `"found":"optimist"`, `"runs":2`)

			before := e.stored(t, path)
			if a := p.patch(t, http.StatusOK, mergePatch, path, `{"n":2}`); a.get("result").Str != "noop" || e.stored(t, path) != before {
				t.Errorf("neither steps nor pipeline run where a patch changes nothing: %s %s", a.body, e.stored(t, path).source)
			}
			a := p.patch(t, http.StatusCreated, mergePatch, "/"+index+"/_doc/2?upsert=true", `{"n":5}`)
			if a.get("result").Str != "created" {
				t.Errorf("%s", a.body)
			}
			holds(t, e, "/"+index+"/_doc/2", `"n":5`, `"edits":1`, `"found":"optimist"`, `"runs":1`)

			// One that the request names runs instead, and none with _none.
			p.patch(t, http.StatusOK, mergePatch, path+"?pipeline=_none", `{"n":7}`)
			holds(t, e, path, `"n":7`, `"edits":3`, `"runs":2`)
		}
	})
}

// An _update goes the engine's way, without the steps; the rule that lets the pipeline run again has optimist do it.
func TestAnUpdateIsTransformedWhereThePipelineMayRunAgain(t *testing.T) {
	eachPiping(t, func(t *testing.T, e target) {
		p, guarded, again := inPipelines(t, e, nil)
		for index, transformed := range map[string]bool{guarded: false, again: true} {
			path := "/" + index + "/_doc/1"
			p.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
			a := p.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_update/1", `{"doc":{"n":2}}`)
			edits := `"edits":1`
			if transformed {
				edits = `"edits":2`
			}
			holds(t, e, path, `"n":2`, edits, `"runs":2`)
			if said := strings.Contains(a.outcome(), "untransformed") && strings.Contains(a.outcome(), "reason=pipeline"); said == transformed {
				t.Errorf("transformed is %v, and the outcome %s", transformed, a.outcome())
			}
		}
	})
}

// faster changes the document just before the first write of it that comes from optimist, as somebody else.
func faster(e *target, change func()) func(t *testing.T, direct target) target {
	return func(t *testing.T, direct target) target {
		var once sync.Once
		*e = direct
		return between(t, direct, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			if r.Method == http.MethodPut && strings.Contains(r.URL.RawQuery, "if_seq_no=") {
				once.Do(change)
			}
			pass.ServeHTTP(w, r)
		})
	}
}

func TestAConflictUnderAPipelineIsTheAnswerUnlessItMayRunAgain(t *testing.T) {
	writes := map[string]func(p target, path string) answer{
		"PATCH": func(p target, path string) answer {
			return p.try(t, http.MethodPatch, path, `{"mine":1}`, "Content-Type", mergePatch)
		},
		"PUT": func(p target, path string) answer {
			return p.try(t, http.MethodPut, path, `{"n":1,"edits":1,"runs":1,"mine":1}`, "Optimist-Session", "mine")
		},
	}
	eachPiping(t, func(t *testing.T, real target) {
		for name, write := range writes {
			for _, rerun := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s again=%v", name, rerun), func(t *testing.T) {
					var e target
					var path string
					p, guarded, again := inPipelines(t, real, faster(&e, func() {
						if _, err := e.do(t.Context(), http.MethodPost, strings.Replace(path, "_doc", "_update", 1), `{"doc":{"theirs":1}}`, nil); err != nil {
							t.Error(err)
						}
					}))
					path = "/" + guarded + "/_doc/1"
					if rerun {
						path = "/" + again + "/_doc/1"
					}
					p.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
					p.send(t, http.StatusOK, http.MethodGet, path, "", "Optimist-Session", "mine")
					a := write(p, path)
					if !rerun {
						refused(t, a, http.StatusConflict, "version_conflict_engine_exception", "")
						holds(t, e, path, `"theirs":1`, `"edits":1`, `"runs":2`)
						if strings.Contains(e.stored(t, path).source, "mine") || !strings.Contains(a.outcome(), "reason=pipeline") {
							t.Errorf("%s after %s", e.stored(t, path).source, a.outcome())
						}
						return
					}
					if a.status != http.StatusOK || !strings.HasPrefix(a.outcome(), "merged;attempts=2") {
						t.Errorf("%d [%s] %s", a.status, a.outcome(), a.body)
					}
					holds(t, e, path, `"n":1`, `"theirs":1`, `"mine":1`, `"edits":2`, `"runs":3`)
				})
			}
		}
	})
}

// TestIfNoneMatchIsTheEnginesCreate: what makes a document says of one that is there what the engine says, and changes nothing.
func TestIfNoneMatchIsTheEnginesCreate(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, "")
		path := "/" + index + "/_doc/1"
		e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
		own := e.send(t, http.StatusConflict, http.MethodPut, "/"+index+"/_create/1", `{"n":2}`)
		for _, c := range [][4]string{
			{http.MethodPut, "/_doc/", `{"n":2}`}, {http.MethodPatch, "/_doc/", `{"n":2}`, mergePatch},
			{http.MethodDelete, "/_doc/"}, {http.MethodPost, "/_update/", `{"doc":{"n":2},"doc_as_upsert":true}`},
		} {
			header := []string{"If-None-Match", "*"}
			if c[3] != "" {
				header = append(header, "Content-Type", c[3])
			}
			query := ""
			if c[0] == http.MethodPatch {
				query = "?upsert=true"
			}
			refused(t, p.try(t, c[0], "/"+index+c[1]+"1"+query, c[2], header...), http.StatusConflict, "version_conflict_engine_exception",
				own.get("error.reason").Str)
			a := p.try(t, c[0], "/"+index+c[1]+"new-"+c[0]+query, c[2], header...)
			want := "created"
			if c[0] == http.MethodDelete {
				want = "not_found"
			}
			if a.get("result").Str != want {
				t.Errorf("%s: %d %s", c[0], a.status, a.body)
			}
		}
		if got := e.stored(t, path); got.source != `{"n":1}` {
			t.Errorf("stored %s", got.source)
		}
	})
}
