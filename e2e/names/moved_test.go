package names_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// mover has clients write by a name that is moved around optimist, again and again. Each adds an entry of its own to a list.
type mover struct {
	*names
	acked map[string][]string // the entries, by the index that the answer names
	made  int
}

// source is the document as the engine has it.
func (m *mover) source(index string) (d struct {
	Of   string
	List []string
}) {
	m.t.Helper()
	a := enginetest.Ask(m.t, "GET", m.e.URL+"/"+index+"/_source/1", "")
	if err := json.Unmarshal([]byte(a.Body), &d); err != nil {
		m.t.Fatal(a, err)
	}
	return d
}

// worker is one client. Its session is named, or inferred.
type worker struct {
	m      *mover
	fields []string
	how    string
}

func (w *worker) ask(method, path, body string) enginetest.Answer {
	w.m.t.Helper()
	return enginetest.Ask(w.m.t, method, w.m.p.URL+path, body, w.fields...)
}

// read returns what the worker sees of the document, as JSON.
func (w *worker) read(name string) string {
	w.m.t.Helper()
	a := w.ask("GET", "/"+name+"/_doc/1", "")
	if w.how == "bulk" {
		a = w.ask("POST", "/"+name+"/_mget", `{"ids":["1"]}`)
	}
	_, source, _ := strings.Cut(a.Body, `"_source":`)
	source, _, _ = strings.Cut(source, "}")
	return source + "}"
}

// write adds an entry to what the worker has seen, and notes it where it was acknowledged.
func (w *worker) write(name, seen string) {
	m := w.m
	m.t.Helper()
	m.made++
	entry := fmt.Sprint("e", m.made)
	body := strings.Replace(seen, "]", `,"`+entry+`"]`, 1)
	var a enginetest.Answer
	switch w.how {
	case "bulk":
		a = w.ask("POST", "/_bulk", `{"index":{"_index":"`+name+`","_id":"1"}}`+"\n"+body+"\n")
	case "patch":
		a = enginetest.Ask(m.t, "PATCH", m.p.URL+"/"+name+"/_doc/1", `[{"op":"add","path":"/list/-","value":"`+entry+`"}]`,
			append(slices.Clone(w.fields), "Content-Type", "application/json-patch+json")...)
	default:
		a = w.ask("PUT", "/"+name+"/_doc/1", body)
	}
	_, index, _ := strings.Cut(a.Body, `"_index":"`)
	index, _, _ = strings.Cut(index, `"`)
	if a.Status != http.StatusOK || strings.Contains(a.Body, `"status":4`) || strings.Contains(a.Outcome(), "passed") {
		m.t.Errorf("%s: %d %s [%s]", w.how, a.Status, a.Body, a.Outcome())
	}
	m.acked[index] = append(m.acked[index], entry)
}

// The name is moved between what clients read and what they write, and between what they write. No acknowledged change is lost, and nothing
// of the index before comes into the one after: the two have documents of the same id, of which the numbers are others.
func TestAWriteFollowsANameThatIsMovedAroundOptimist(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		for _, inPlace := range []bool{false, true} {
			m := &mover{names: &names{t: t, e: e, index: e.Index(t)}, acked: map[string][]string{}}
			m.p = optimist.Start(t, optimist.Options{Upstream: []string{e.URL}})
			defer m.clean()
			m.move(inPlace)
		}
	})
}

func (m *mover) move(inPlace bool) {
	m.t.Helper()
	name := m.index + "-name"
	indices := []string{m.index + "-blue", m.index + "-green"}
	if inPlace {
		indices[0] = name
	}
	for i, index := range indices {
		m.engine("PUT", "/"+index, `{"settings":{"number_of_shards":1,"number_of_replicas":0}}`)
		if i == 1 { // so that its numbers are never those of the other
			enginetest.Ask(m.t, "POST", m.e.URL+"/"+index+"/_bulk", strings.Repeat(`{"index":{"_id":"pad"}}`+"\n{}\n", 1000))
		}
		m.engine("PUT", "/"+index+"/_doc/1", fmt.Sprintf(`{"of":%q,"list":["of %s"]}`, index, index))
	}
	if !inPlace {
		m.engine("POST", "/_aliases", fmt.Sprintf(`{"actions":[{"add":{"index":%q,"alias":%q}}]}`, indices[0], name))
	}
	var workers []*worker
	for i, how := range []string{"put", "bulk", "patch"} {
		workers = append(workers, &worker{m, []string{"Optimist-Session", fmt.Sprint("w", i)}, how}, &worker{m, nil, how})
	}
	at := 0
	turn := func() {
		from, to := indices[at], indices[1-at]
		action := fmt.Sprintf(`{"remove":{"index":%q,"alias":%q}}`, from, name)
		if inPlace {
			action = fmt.Sprintf(`{"remove_index":{"index":%q}}`, from)
		}
		m.engine("POST", "/_aliases", fmt.Sprintf(`{"actions":[%s,{"add":{"index":%q,"alias":%q}}]}`, action, to, name))
		at = 1 - at
	}
	turns := 6
	if inPlace {
		turns = 1
	}
	for range turns {
		for _, w := range workers {
			w.write(name, w.read(name))
		}
		turn() // between a write and a read
		for _, w := range workers {
			w.write(name, w.read(name))
		}
		if inPlace {
			continue
		}
		var seen []string
		for _, w := range workers {
			seen = append(seen, w.read(name))
		}
		turn() // between a read and a write
		for i, w := range workers {
			w.write(name, seen[i])
		}
	}
	for i, index := range indices {
		if inPlace && i == 0 {
			continue // it is gone
		}
		d := m.source(index)
		for _, entry := range m.acked[index] {
			if !slices.Contains(d.List, entry) {
				m.t.Errorf("%s, in place %v: %s is lost", index, inPlace, entry)
			}
		}
		if d.Of != index || slices.Contains(d.List, "of "+indices[1-i]) {
			m.t.Errorf("%s, in place %v: it has what the other index had: %+v", index, inPlace, d)
		}
	}
}
