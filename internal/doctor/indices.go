package doctor

import (
	"cmp"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/internal/rule"
)

// allIndices asks for all indices and only for what decides whether they can be guarded; uuid is there so that none is left out.
func allIndices() esapi.Request {
	defaults := true
	return esapi.IndicesGetRequest{Index: []string{"_all"}, ExpandWildcards: "open,hidden", IncludeDefaults: &defaults, FilterPath: []string{
		"*.settings.index.uuid", "*.settings.index.disable_sequence_numbers", "*.defaults.index.disable_sequence_numbers",
		"*.settings.index.default_pipeline", "*.settings.index.final_pipeline", "*.settings.index.mode",
		"*.settings.index.mapping.source.mode", "*.settings.index.derived_source.enabled",
		"*.settings.index.version.created", "*.settings.index.mapping.exclude_source_vectors", // what es.Partial asks for to see vectors
		// What refused looks at, with the types:
		"*.settings.index.blocks", "*.mappings.dynamic", "*.mappings.**.dynamic", "*.mappings.**.enabled",
		"*.mappings._source", "*.mappings.*._source", "*.mappings.**.type", "*.data_stream", "*.aliases",
	}}
}

// indices finds those that rules take and that can't be guarded, or not merged.
func (e *examination) indices() {
	a, err := e.ask(e.node.Doer, allIndices())
	if err != nil || !a.ok() {
		e.report.add(Warn, "indices", "doctor can't look at them: %s", cause(a, err))
		return
	}
	e.report.Seen = 0
	var aliased []string // "index by rule"
	streams := map[string]bool{}
	a.body.ForEach(func(k, v gjson.Result) bool {
		e.report.Seen++
		name, stream := k.String(), v.Get("data_stream").String()
		if stream != "" {
			if streams[stream] {
				return true
			}
			streams[stream], name = true, stream // clients write to the stream's name
		}
		names := []string{name}
		if stream != "" {
			names = append(names, k.String())
		}
		v.Get("aliases").ForEach(func(alias, _ gjson.Result) bool { names = append(names, alias.String()); return true })
		r := e.Rules.MatchAny(names...)
		if r == nil || r.Mode == rule.Off || r.AnyIndex && stream != "" {
			return true
		}
		e.report.Taken++
		if stream == "" && e.Rules.MatchAny(name) == nil {
			aliased = append(aliased, name+" by the rule "+r.Name)
		}
		if found := judge(name, r, v); found.Level != OK {
			e.report.Indices = append(e.report.Indices, found)
		}
		return true
	})
	slices.SortFunc(e.report.Indices, func(a, b Index) int { // the worst first
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(a.Name, b.Name))
	})
	e.sumUp()
	if n := len(aliased); n > 0 {
		e.report.add(Warn, "aliases", "%d taken by an alias alone, for example %s: a write by the index's own name, which hits have, "+
			"isn't guarded; name both in the rule", n, slices.Min(aliased))
	}
}

func (e *examination) sumUp() {
	r := e.report
	switch n := len(r.Indices); {
	case r.Taken == 0:
		r.add(Note, "indices", "%d seen; none is taken by a rule yet", r.Seen)
	case n == 0:
		r.add(OK, "indices", "%d seen, %d taken by rules, all guarded in full", r.Seen, r.Taken)
	default:
		r.add(r.Indices[0].Level, "indices", "%d seen, %d taken by rules, %d of them not guarded in full, or without writes (below)",
			r.Seen, r.Taken, n)
	}
}

// judge says what optimist can do in an index that a rule takes. v is the engine's description.
func judge(name string, r *rule.Rule, v gjson.Result) Index {
	s := v.Get("settings.index")
	found := Index{Name: name, Rule: r.Name}
	if why := refused(r, v); why != "" {
		return writesFailing(name, r, why)
	}
	const guardOnly = "guards; a conflict is a 409, nothing is merged"
	switch source, pipe := es.Partial(s, v.Get("mappings")), es.Pipeline(s); {
	case s.Get("disable_sequence_numbers").Bool() || v.Get("defaults.index.disable_sequence_numbers").Bool():
		found.Level, found.Does, found.Why = Fail, "forwards writes unguarded", "index.disable_sequence_numbers"
	case source != "":
		found.Level, found.Does, found.Why = Warn, guardOnly, source+": a document read back isn't the one that was written"
	case pipe != "" && !r.RerunPipeline:
		found.Level, found.Does, found.Why = Warn, guardOnly, pipe+": it would run twice; if it may, set pipeline: rerun"
	}
	return found
}
