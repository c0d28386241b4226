package es

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/embedded"
	"optimist/internal/enginetest"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// engine is the embedded engine, with answers of its own to some requests.
type engine struct {
	*enginetest.Engine
	last *upstream.Request
}

func newClient(canned enginetest.Canned) (*Client, *engine) {
	e := &engine{Engine: enginetest.New()}
	e.Before = func(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
		e.last = r
		return canned.Answer(ctx, r)
	}
	return &Client{Upstream: e}, e
}

func TestFetchGivesTheRevisionWithItsOwnBytes(t *testing.T) {
	c, e := newClient(nil)
	body := `{ "n" : 9007199254740993.10, "s":"\u00e9"}`
	e.Put(t, "/shop/_doc/a%2Fb%20c%23%C3%BC?routing=r%2B1", body)
	rev, err := c.Fetch(t.Context(), Caller{}, Document{Ref: doc.Ref{Index: "shop", ID: "a/b c#ü", Routing: "r+1"}})
	if err != nil || string(rev.Source) != body || rev.Numbers != (doc.Numbers{SeqNo: 0, PrimaryTerm: 1}) || rev.Version != 1 {
		t.Errorf("%+v %s %v", rev, rev.Source, err)
	}
	if !e.last.Repeatable || e.last.Own {
		t.Errorf("a read is repeatable and the client's: %+v", e.last)
	}
}

func TestFetchTellsWhyThereIsNoRevision(t *testing.T) {
	for name, c := range map[string]struct {
		a    enginetest.Answer
		want error
	}{
		"no document":    {enginetest.Answer{Status: 404, Body: `{"_index":"shop","_id":"1","found":false}`}, doc.ErrMissing},
		"no index":       {enginetest.Answer{Status: 404, Body: `{"error":{"type":"index_not_found_exception"},"status":404}`}, ErrNoIndex},
		"no permission":  {enginetest.Answer{Status: 403, Body: `{"error":{"type":"security_exception"},"status":403}`}, ErrForbidden},
		"no login":       {enginetest.Answer{Status: 401, Body: `{}`}, ErrForbidden},
		"no source":      {enginetest.Answer{Status: 200, Body: `{"_index":"shop","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"found":true}`}, ErrNoSource},
		"not the engine": {enginetest.Answer{Status: 200, Body: `<html>`}, ErrNoSource},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := newClient(enginetest.Canned{"GET /shop/_doc/1": c.a})
			if _, err := cl.Fetch(t.Context(), Caller{}, Document{Ref: doc.Ref{Index: "shop", ID: "1"}}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	cl, _ := newClient(enginetest.Canned{"GET /shop/_doc/1": {Status: 503, Body: `{"error":"busy"}`}})
	var status *StatusError
	if _, err := cl.Fetch(t.Context(), Caller{}, Document{Ref: doc.Ref{Index: "shop", ID: "1"}}); !errors.As(err, &status) || status.Status != 503 {
		t.Errorf("got %v", err)
	}
}

// An operator blocks an index. That is a 403, too, and says nothing of who asks.
func TestABlockedIndexRefusesNobodysCredentials(t *testing.T) {
	cl, _ := newClient(enginetest.Canned{"GET /shop/_doc/1": {Status: 403, Body: `{"error":{"type":"cluster_block_exception"},"status":403}`}})
	_, err := cl.Fetch(t.Context(), Caller{}, Document{Ref: doc.Ref{Index: "shop", ID: "1"}})
	if errors.Is(err, ErrForbidden) || !IsAnswer(err) || !IsBlocked(err) {
		t.Errorf("got %v", err)
	}
}

// TestAPageIsNoMissingIndex: something in front of the engine may answer in its place.
func TestAPageIsNoMissingIndex(t *testing.T) {
	for name, a := range map[string]enginetest.Answer{
		"a page":               {Status: 404, Body: `<html>404 page not found</html>`},
		"nothing":              {Status: 404},
		"a gateway's JSON":     {Status: 404, Body: `{"message":"no Route matched with those values"}`},
		"a page with success":  {Status: 200, Body: `<html>please log in</html>`},
		"success with nothing": {Status: 200},
	} {
		cl, _ := newClient(enginetest.Canned{"GET /shop": a, "GET /shop/_doc/1": a, "POST /_mget": a, "POST /shop/_refresh": a})
		one := Document{Ref: doc.Ref{Index: "shop", ID: "1"}}
		_, resolved := cl.ResolveIndex(t.Context(), Caller{}, "shop")
		if errors.Is(resolved, ErrNoIndex) || !IsPage(resolved) {
			t.Errorf("%s: ResolveIndex: %v", name, resolved)
		}
		if listed, err := cl.List(t.Context(), Caller{}, "shop"); !IsPage(err) {
			t.Errorf("%s: List: %v %v", name, listed, err)
		}
		if a.Status != 404 {
			continue // Fetch has ErrNoSource for that
		}
		_, fetched := cl.Fetch(t.Context(), Caller{}, one)
		_, several := cl.FetchAll(t.Context(), Caller{}, []Document{one})
		refreshed := cl.Refresh(t.Context(), Caller{}, "shop")
		for call, err := range map[string]error{"Fetch": fetched, "FetchAll": several, "Refresh": refreshed} {
			if errors.Is(err, ErrNoIndex) || errors.Is(err, doc.ErrMissing) || !IsPage(err) {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
	for name, own := range map[string]enginetest.Canned{
		"the engine's own 404": nil,
		"without details":      {"GET /shop": {Status: 404, Body: `{"error":"IndexNotFoundException[no such index [shop]]","status":404}`}},
	} {
		cl, _ := newClient(own)
		if _, err := cl.ResolveIndex(t.Context(), Caller{}, "shop"); !errors.Is(err, ErrNoIndex) || IsPage(err) {
			t.Errorf("%s: %v", name, err)
		}
		if listed, err := cl.List(t.Context(), Caller{}, "shop"); err != nil || len(listed) > 0 {
			t.Errorf("%s: %v %v", name, listed, err)
		}
	}
}

// TestAPageMakesNoIndexOfOurOwn: the index may be there, in a later generation than the one that optimist would make.
func TestAPageMakesNoIndexOfOurOwn(t *testing.T) {
	var sent []string
	x := &OwnIndex{Name: "own", Made: "own-000001", Settings: "{}", Is: "an index", Format: 1, Err: errors.New("store"),
		Errors: OwnErrors{Log: slog.New(slog.DiscardHandler)},
		Upstream: doerFunc(func(r *upstream.Request) (*upstream.Response, error) {
			sent = append(sent, r.Method)
			return enginetest.Response(404, `<html>404 page not found</html>`), nil
		})}
	if err := x.Prepare(t.Context()); !errors.Is(err, x.Err) || x.IsThere() || len(sent) != 1 {
		t.Errorf("%v, %v, there %v", sent, err, x.IsThere())
	}
}

func TestWhatIsMissing(t *testing.T) {
	for body, want := range map[string]bool{
		`{"_index":"shop","_id":"1","found":false}`:                                                        true,
		`{"_index":"shop","_id":"1","_version":1,"result":"not_found","_seq_no":3,"_primary_term":1}`:      true,
		`{"error":{"type":"index_not_found_exception","reason":"no such index [shop]"},"status":404}`:      true,
		`{"error":"IndexNotFoundException[no such index [shop]]","status":404}`:                            true,
		`{"error":{"type":"resource_not_found_exception","reason":"Document not found [shop]/[1]"}}`:       true,
		`{"error":{"type":"resource_not_found_exception","reason":"Missing metadata for snapshot [a:b]"}}`: false,
		`{"timestamp":"2026-01-01","path":"/shop","status":404,"error":"Not Found"}`:                       false,
		`{"result":"ok"}`: false,
		`<html>`:          false,
		``:                false,
	} {
		if a := (&Answer{Status: 404, Body: []byte(body)}); a.IsMissing() != want {
			t.Errorf("%s: %v", body, !want)
		}
		noIndex := strings.Contains(body, "no such index")
		if a := (&Answer{Status: 404, Body: []byte(body)}); a.IsNoIndex() != noIndex {
			t.Errorf("%s: no index: %v", body, !noIndex)
		}
		if a := (&Answer{Status: 200, Body: []byte(body)}); a.IsMissing() || a.IsNoIndex() {
			t.Errorf("with success: %s", body)
		}
	}
}

func TestDescribeFindsWhatCantBeMerged(t *testing.T) {
	for name, c := range map[string]struct {
		index string
		want  Index
	}{
		"plain":                   {`{"settings":{"index":{"uuid":"u"}}}`, Index{}},
		"pipeline":                {`{"settings":{"index":{"uuid":"u","default_pipeline":"p"}}}`, Index{Pipeline: true}},
		"final pipeline":          {`{"settings":{"index":{"uuid":"u","default_pipeline":"_none","final_pipeline":"p"}}}`, Index{Pipeline: true}},
		"no pipeline":             {`{"settings":{"index":{"uuid":"u","final_pipeline":"_none"}}}`, Index{}},
		"excludes":                {`{"settings":{"index":{"uuid":"u"}},"mappings":{"_source":{"excludes":["a"]}}}`, Index{Partial: true}},
		"disabled":                {`{"settings":{"index":{"uuid":"u"}},"mappings":{"_source":{"enabled":false}}}`, Index{Partial: true}},
		"typed":                   {`{"settings":{"index":{"uuid":"u"}},"mappings":{"item":{"_source":{"includes":["a"]}}}}`, Index{Partial: true}},
		"synthetic":               {`{"settings":{"index":{"uuid":"u","mapping":{"source":{"mode":"synthetic"}}}}}`, Index{Partial: true}},
		"synthetic, as mapped":    {`{"settings":{"index":{"uuid":"u"}},"mappings":{"_source":{"mode":"synthetic"}}}`, Index{Partial: true}},
		"time series":             {`{"settings":{"index":{"uuid":"u","mode":"time_series"}}}`, Index{Partial: true}},
		"logsdb, stored":          {`{"settings":{"index":{"uuid":"u","mode":"logsdb","mapping":{"source":{"mode":"stored"}}}}}`, Index{}},
		"logsdb":                  {`{"settings":{"index":{"uuid":"u","mode":"logsdb"}}}`, Index{Partial: true}},
		"no numbers":              {`{"settings":{"index":{"uuid":"u","disable_sequence_numbers":"true"}}}`, Index{NoSeqNo: true}},
		"vectors that reads hide": {`{"settings":{"index":{"uuid":"u","version":{"created":"9033000"}}},"mappings":{"properties":{"a":{"properties":{"v":{"type":"dense_vector"}}}}}}`, Index{Partial: true}},
		"vectors of a text":       {`{"settings":{"index":{"uuid":"u","version":{"created":"9033000"}}},"mappings":{"properties":{"v":{"type":"semantic_text"}}}}`, Index{Partial: true}},
		"vectors that are shown":  {`{"settings":{"index":{"uuid":"u","version":{"created":"9033000"},"mapping":{"exclude_source_vectors":"false"}}},"mappings":{"properties":{"v":{"type":"dense_vector"}}}}`, Index{}},
		"vectors of an older one": {`{"settings":{"index":{"uuid":"u","version":{"created":"7100299"}}},"mappings":{"properties":{"v":{"type":"dense_vector"}}}}`, Index{}},
		"routed":                  {`{"settings":{"index":{"uuid":"u"}},"mappings":{"_routing":{"required":true}}}`, Index{MustRoute: true}},
		"derived":                 {`{"settings":{"index":{"uuid":"u","derived_source":{"enabled":"true"}}}}`, Index{Partial: true}},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := newClient(enginetest.Canned{"GET /shop": {Status: 200, Body: `{"shop":` + c.index + `}`}})
			got, err := cl.ResolveIndex(t.Context(), Caller{}, "shop")
			c.want.Name, c.want.UUID = "shop", "u"
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestDescribeFollowsNamesToTheIndexThatIsWritten(t *testing.T) {
	one := `{"settings":{"index":{"uuid":"u"}}`
	cl, _ := newClient(enginetest.Canned{"GET /store": {Status: 200, Body: `{"shop":` + one + `,"aliases":{"store":{},"kiosk":{}}}}`}})
	if got, err := cl.ResolveIndex(t.Context(), Caller{}, "store"); err != nil || !slices.Equal(got.Aliases, []string{"store", "kiosk"}) {
		t.Errorf("%+v %v", got, err)
	}
	for name, c := range map[string]struct {
		asked, body, want, stream string
		err                       error
	}{
		"alias of one":     {asked: "a.b", body: `{"shop-1":` + one + `,"aliases":{"a.b":{}}}}`, want: "shop-1"},
		"write index":      {asked: "a.b", body: `{"shop-1":` + one + `},"shop-2":` + one + `,"aliases":{"a.b":{"is_write_index":true}}}}`, want: "shop-2"},
		"alias of several": {asked: "a", body: `{"shop-1":` + one + `},"shop-2":` + one + `}}`, err: ErrNoIndex},
		"an endpoint":      {asked: "_all", body: `{"shop":` + one + `}}`, err: ErrNoIndex},
		"data stream":      {asked: "logs", body: `{".ds-logs-000001":` + one + `,"data_stream":"logs"},".ds-logs-000002":` + one + `,"data_stream":"logs"}}`, want: ".ds-logs-000002", stream: "logs"},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := newClient(enginetest.Canned{"GET /" + c.asked: {Status: 200, Body: c.body}})
			got, err := cl.ResolveIndex(t.Context(), Caller{}, c.asked)
			if !errors.Is(err, c.err) || got.Name != c.want || got.DataStream != c.stream {
				t.Errorf("got %+v %v", got, err)
			}
		})
	}
}

// TestAnIndexOfADataStreamHasTheAliasesOfItsStream: they count only where somebody needs them, or where an alias stands for several streams.
func TestAnIndexOfADataStreamHasTheAliasesOfItsStream(t *testing.T) {
	of := func(index, stream string) string {
		return `"` + index + `":{"settings":{"index":{"uuid":"u"}},"aliases":{"own":{}},"data_stream":"` + stream + `"}`
	}
	logs, both := of(".ds-a.b-000001", "a.b")+","+of(".ds-a.b-000002", "a.b"), of(".ds-a.b-000001", "a.b")+","+of(".ds-c-000009", "c")
	const ofLogs, ofBoth = `{"a.b":{"aliases":{"kiosk":{}}}}`, `{"c":{"aliases":{"both":{}}},"a.b":{"aliases":{"both":{"is_write_index":true}}}}`
	for name, c := range map[string]struct {
		asked, indices, streams, answer, want, aliases string
		unneeded                                       bool
		err                                            error
	}{
		"by its name":            {asked: "a.b", indices: logs, streams: "a.b", answer: ofLogs, want: ".ds-a.b-000002", aliases: "own kiosk"},
		"by an index":            {asked: ".ds-a.b-000001", indices: of(".ds-a.b-000001", "a.b"), streams: "a.b", answer: ofLogs, want: ".ds-a.b-000001", aliases: "own kiosk"},
		"that nobody needs":      {asked: "a.b", indices: logs, streams: "a.b", answer: ofLogs, unneeded: true, want: ".ds-a.b-000002", aliases: "own"},
		"where there are none":   {asked: "a.b", indices: logs, streams: "x", want: ".ds-a.b-000002", aliases: "own"},
		"by an alias of several": {asked: "both", indices: both, streams: "a.b,c", answer: ofBoth, unneeded: true, want: ".ds-a.b-000001", aliases: "own both"},
		"that can't be written":  {asked: "all", indices: both, streams: "a.b,c", answer: ofBoth, err: ErrNoIndex},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := newClient(enginetest.Canned{"GET /" + c.asked: {Status: 200, Body: "{" + c.indices + "}"},
				"GET /" + c.streams + "/_alias": {Status: 200, Body: c.answer}})
			cl.StreamAliases = func() bool { return !c.unneeded }
			got, err := cl.ResolveIndex(t.Context(), Caller{}, c.asked)
			if !errors.Is(err, c.err) || got.Name != c.want || strings.Join(got.Aliases, " ") != c.aliases {
				t.Errorf("got %+v %v", got, err)
			}
		})
	}
	cl, _ := newClient(enginetest.Canned{"GET /a.b": {Status: 200, Body: "{" + logs + "}"}, "GET /a.b/_alias": {Status: 503, Body: "{}"}})
	cl.StreamAliases = func() bool { return true }
	if got, err := cl.ResolveIndex(t.Context(), Caller{}, "a.b"); err == nil || IsAnswer(err) {
		t.Errorf("from an engine that can't say: %+v %v", got, err)
	}
}

// TestAStreamHasNoAliasesOnlyWhereTheEngineSaysSo: else locks by these names wouldn't count, and nobody would notice.
func TestAStreamHasNoAliasesOnlyWhereTheEngineSaysSo(t *testing.T) {
	const logs = `".ds-a-000001":{"settings":{"index":{"uuid":"u"}},"data_stream":"a"}`
	const other = `,".ds-c-000001":{"settings":{"index":{"uuid":"v"}},"data_stream":"c"}`
	missing, refused := `{"error":{"type":"index_not_found_exception"}}`, &StatusError{}
	for _, c := range []struct {
		status int
		body   string
		want   [2]error // of one stream, and of an alias of two
	}{
		{400, "{}", [2]error{refused, refused}}, {403, "{}", [2]error{nil, ErrForbidden}}, {404, missing, [2]error{nil, ErrNoIndex}},
		{404, "<html>", [2]error{refused, refused}}, {405, "{}", [2]error{nil, ErrNoIndex}}, {413, "{}", [2]error{refused, refused}},
	} {
		for i, indices := range []string{logs, logs + other} {
			answer := enginetest.Answer{Status: c.status, Body: c.body}
			cl, _ := newClient(enginetest.Canned{"GET /x": {Status: 200, Body: "{" + indices + "}"}, "GET /a/_alias": answer,
				"GET /a,c/_alias": answer})
			cl.StreamAliases = func() bool { return true }
			_, err := cl.ResolveIndex(t.Context(), Caller{}, "x")
			if _, fails := c.want[i].(*StatusError); fails && (!IsAnswer(err) || errors.Is(err, ErrNoIndex)) || !fails && !errors.Is(err, c.want[i]) {
				t.Errorf("%+v, of %d streams: %v", answer, i+1, err)
			}
		}
	}
}

func TestAnMgetThatIsAnsweredWithAnotherDocumentIsNone(t *testing.T) {
	cl := &Client{Upstream: &enginetest.Engine{Before: func(context.Context, *upstream.Request) (*upstream.Response, error) {
		return enginetest.Response(200, `{"docs":[{"_index":"a","_id":"2","_version":1,"_seq_no":0,"_primary_term":1,"found":true,"_source":{}}]}`), nil
	}}}
	got, err := cl.FetchAll(t.Context(), Caller{}, []Document{{Ref: doc.Ref{Index: "a", ID: "1"}}})
	if err != nil || !errors.Is(got[0].Err, ErrAnothers) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestAnAliasOfManyStreams: all their names make no request's first line.
func TestAnAliasOfManyStreams(t *testing.T) {
	const streams = 100
	name := func(i int) string { return fmt.Sprint(strings.Repeat("ä", 30), i) }
	var body strings.Builder
	for i := range streams {
		fmt.Fprintf(&body, `,".ds-%s-000001":{"settings":{"index":{"uuid":"u"}},"data_stream":%[1]q}`, name(i))
	}
	cl := &Client{Upstream: &enginetest.Engine{Before: func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		target, _ := url.PathUnescape(string(r.Target))
		switch names, isAlias := strings.CutSuffix(strings.TrimPrefix(target, "/"), "/_alias"); {
		case !isAlias:
			return enginetest.Response(200, "{"+body.String()[1:]+"}"), nil
		case len(r.Target) > 4000:
			return enginetest.Response(400, "{}"), nil
		case slices.Contains(strings.Split(names, ","), name(streams-1)):
			return enginetest.Response(200, `{"`+name(streams-1)+`":{"aliases":{"all":{"is_write_index":true}}}}`), nil
		}
		return enginetest.Response(404, `{"error":{"type":"index_not_found_exception"}}`), nil
	}}}
	if got, err := cl.ResolveIndex(t.Context(), Caller{}, "all"); err != nil || got.DataStream != name(streams-1) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestDescribeTellsAnAliasThatSearchesOnlyPart(t *testing.T) {
	for alias, want := range map[string]bool{`{}`: false, `{"is_write_index":true}`: false, `{"index_routing":"r"}`: false,
		`{"filter":{"match_all":{}}}`: true, `{"search_routing":"r"}`: true} {
		cl, _ := newClient(enginetest.Canned{"GET /a": {Status: 200, Body: `{"shop":{"settings":{"index":{"uuid":"u"}},"aliases":{"a":` + alias + `}}}`}})
		if got, err := cl.ResolveIndex(t.Context(), Caller{}, "a"); err != nil || got.Narrow != want {
			t.Errorf("%s: %+v %v", alias, got, err)
		}
	}
}

// TestASearchByAnAliasOfAStreamMayFindOnlyPart: what the engine tells of an index doesn't say whether the alias of its stream has a filter.
func TestASearchByAnAliasOfAStreamMayFindOnlyPart(t *testing.T) {
	const first = `".ds-a-000001":{"settings":{"index":{"uuid":"u"}},"data_stream":"a"}`
	const second = `,".ds-a-000002":{"settings":{"index":{"uuid":"w"}},"data_stream":"a"}`
	const other = `,".ds-c-000001":{"settings":{"index":{"uuid":"v"}},"data_stream":"c"}`
	const writes = `{"a":{"aliases":{"x":{"is_write_index":true}}},"c":{"aliases":{"x":{%s}}}}`
	for name, c := range map[string]struct {
		asked, indices, aliases string
		narrow                  bool
		wide                    string
	}{
		"the stream":                    {asked: "a", indices: first + second},
		"an index":                      {asked: ".ds-a-000001", indices: first},
		"an alias":                      {asked: "x", indices: first + second, narrow: true, wide: "a"},
		"an alias, of one index":        {asked: "x", indices: first, narrow: true, wide: "a"},
		"of several":                    {asked: "x", indices: first + other, aliases: fmt.Sprintf(writes, "")},
		"of several, one with a filter": {asked: "x", indices: first + other, aliases: fmt.Sprintf(writes, `"filter":{"term":{"t":1}}`), narrow: true},
	} {
		cl, _ := newClient(enginetest.Canned{"GET /" + c.asked: {Status: 200, Body: "{" + c.indices + "}"}, "GET /a,c/_alias": {Status: 200, Body: c.aliases}})
		if got, err := cl.ResolveIndex(t.Context(), Caller{}, c.asked); err != nil || got.Narrow != c.narrow || got.Wide != c.wide {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestDescribeAsksTheEmbeddedEngine(t *testing.T) {
	c, e := newClient(nil)
	if _, err := c.ResolveIndex(t.Context(), Caller{}, "shop"); !errors.Is(err, ErrNoIndex) {
		t.Errorf("before it is there: %v", err)
	}
	e.Put(t, "/shop", `{"aliases":{"store":{}}}`)
	for _, name := range []string{"shop", "store"} {
		if got, err := c.ResolveIndex(t.Context(), Caller{}, name); err != nil || got.Name != "shop" || got.UUID == "" {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestPrimaryTermIsTheShardsOwnAsTheNodeSeesIt(t *testing.T) {
	c, e := newClient(enginetest.Canned{"GET /_cluster/state/metadata/a.b": {Status: 200, Body: `{"metadata":{"indices":{"a.b":{"primary_terms":{"0":3,"12":7}}}}}`},
		"GET /_cluster/state/metadata/even":   {Status: 200, Body: `{"metadata":{"indices":{"even":{"primary_terms":{"0":4,"1":4}}}}}`},
		"GET /_cluster/state/metadata/closed": {Status: 403, Body: `{}`}})
	if term, err := c.PrimaryTerm(t.Context(), Caller{}, Shard{"a.b", "12"}, "http://two"); err != nil || term != 7 {
		t.Errorf("%d %v", term, err)
	}
	if !strings.Contains(string(e.last.Target), "local=true") || e.last.Node != "http://two" || !e.last.Repeatable {
		t.Errorf("asked %+v", e.last)
	}
	other := Client{Upstream: doerFunc(func(r *upstream.Request) (*upstream.Response, error) {
		res, err := e.Do(t.Context(), r)
		res.Node = "http://three"
		return res, err
	})}
	if _, err := other.PrimaryTerm(t.Context(), Caller{}, Shard{"a.b", "12"}, "http://two"); !errors.Is(err, ErrOtherNode) || IsAnswer(err) {
		t.Errorf("another node: %v", err)
	}
	if _, err := c.PrimaryTerm(t.Context(), Caller{}, Shard{"a.b", "1"}, ""); !errors.Is(err, ErrNoIndex) {
		t.Errorf("a shard that isn't there: %v", err)
	}
	if _, err := c.PrimaryTerm(t.Context(), Caller{}, Shard{"a.b", ""}, ""); !errors.Is(err, ErrNoTerm) {
		t.Errorf("any of different shards: %v", err)
	}
	if term, err := c.PrimaryTerm(t.Context(), Caller{}, Shard{"even", ""}, ""); err != nil || term != 4 {
		t.Errorf("any of equal shards: %d %v", term, err)
	}
	if _, err := c.PrimaryTerm(t.Context(), Caller{}, Shard{"closed", "0"}, ""); !errors.Is(err, ErrForbidden) {
		t.Errorf("%v", err)
	}
	e.Put(t, "/shop", `{}`)
	if term, err := c.PrimaryTerm(t.Context(), Caller{}, Shard{"shop", "0"}, ""); err != nil || term != 1 {
		t.Errorf("the embedded engine: %d %v", term, err)
	}
}

func TestAnIndexThatDemandsARoutingIsAskedWithOne(t *testing.T) {
	c, e := newClient(nil)
	e.Put(t, "/shop", `{"mappings":{"_routing":{"required":true}}}`)
	if whole, err := c.SeesWhole(t.Context(), Caller{}, "shop", "r"); err != nil || !whole {
		t.Errorf("%v %v", whole, err)
	}
}

// The engine makes an index that an update doesn't find: one that somebody has just deleted must not come back for a question of ours.
func TestTheProbeMakesNoIndex(t *testing.T) {
	c, _ := newClient(nil)
	if _, err := c.SeesWhole(t.Context(), Caller{}, "gone", ""); err != nil {
		t.Error(err)
	}
	if _, err := c.ResolveIndex(t.Context(), Caller{}, "gone"); !errors.Is(err, ErrNoIndex) {
		t.Errorf("the probe has made the index: %v", err)
	}
}

func TestAnAliasIsProbedAsAnIndexIs(t *testing.T) {
	c, e := newClient(nil)
	e.Put(t, "/shop", `{"aliases":{"store":{}}}`)
	if whole, err := c.SeesWhole(t.Context(), Caller{}, "store", ""); err != nil || !whole {
		t.Errorf("%v %v", whole, err)
	}
}

func TestOnlyAMissingDocumentShowsAWholeView(t *testing.T) {
	c, e := newClient(nil)
	e.Put(t, "/shop", `{}`)
	auth := wire.Field{Name: []byte("Authorization"), Value: []byte("Basic x")}
	if whole, err := c.SeesWhole(t.Context(), Caller{Fields: []wire.Field{auth}}, "shop", ""); err != nil || !whole {
		t.Errorf("%v %v", whole, err)
	}
	sent := false
	for _, f := range e.last.Fields {
		sent = sent || string(f.Value) == "Basic x"
	}
	if !sent || e.last.Repeatable {
		t.Errorf("the probe is asked as the client: %+v", e.last)
	}
	for status, busy := range map[int]bool{400: false, 403: false, 404: false, 500: false, 429: true, 503: true} { // OpenSearch 3.4's security: 500
		refusing := doerFunc(func(*upstream.Request) (*upstream.Response, error) {
			res := &upstream.Response{Payload: []byte(`{"error":{"type":"security_exception"}}`)}
			res.Status = status
			return res, nil
		})
		if whole, err := (&Client{Upstream: refusing}).SeesWhole(t.Context(), Caller{}, "shop", ""); (err != nil) != busy || whole {
			t.Errorf("an update refused with %d: %v %v", status, whole, err)
		}
	}
}

// TestAPageSaysNothingOfTheView: a patch would be refused with a 400, as if its client saw only a part of each document.
func TestAPageSaysNothingOfTheView(t *testing.T) {
	for status, body := range map[int]string{404: `<html>404 page not found</html>`, 200: `<html>please log in</html>`, 302: ""} {
		gateway := doerFunc(func(*upstream.Request) (*upstream.Response, error) { return enginetest.Response(status, body), nil })
		if whole, err := (&Client{Upstream: gateway}).SeesWhole(t.Context(), Caller{}, "shop", ""); !IsPage(err) || whole {
			t.Errorf("an update answered with %d %s: %v %v", status, body, whole, err)
		}
	}
}

// An engine may look before its security whether an index takes writes: that it takes none says nothing of the client's view.
func TestAnIndexThatTakesNoWritesNowSaysNothingOfTheView(t *testing.T) {
	for _, c := range []struct {
		kind   string
		status int
	}{{"cluster_block_exception", 403}, {"cluster_block_exception", 503}, {"index_closed_exception", 400}, {"illegal_argument_exception", 400}} {
		refusing := doerFunc(func(*upstream.Request) (*upstream.Response, error) {
			res := &upstream.Response{Payload: []byte(`{"error":{"type":"` + c.kind + `"}}`)}
			res.Status = c.status
			return res, nil
		})
		if whole, err := (&Client{Upstream: refusing}).SeesWhole(t.Context(), Caller{}, "shop", ""); err == nil || whole {
			t.Errorf("an update refused with %d %s: %v %v", c.status, c.kind, whole, err)
		}
	}
}

type doerFunc func(*upstream.Request) (*upstream.Response, error)

func (f doerFunc) Do(_ context.Context, r *upstream.Request) (*upstream.Response, error) { return f(r) }

func TestListTellsIndicesFromThoseThatAreMadeAnew(t *testing.T) {
	c, e := newClient(nil)
	e.Put(t, "/shop", `{"aliases":{"store":{}}}`)
	e.Put(t, "/other", `{}`)
	before, err := c.List(t.Context(), Caller{}, "sh*,none")
	if err != nil || len(before) != 1 || before["shop"].ID == "" || len(before["shop"].Names) != 1 {
		t.Fatalf("%v %v", before, err)
	}
	e.Handle(&embedded.Request{Method: "DELETE", Target: "/shop"})
	if gone, err := c.List(t.Context(), Caller{}, "store,shop"); err != nil || len(gone) != 0 {
		t.Errorf("%v %v", gone, err)
	}
	e.Put(t, "/shop", `{}`)
	if after, err := c.List(t.Context(), Caller{}, "shop"); err != nil || after["shop"].ID == before["shop"].ID {
		t.Errorf("%v %v", after, err)
	}
	c, _ = newClient(enginetest.Canned{"GET /a": {Status: 200, Body: `{"a":{"settings":{"index":{"uuid":"u","history":{"uuid":"h"}}},"data_stream":"d"}}`}, "GET /b": {Status: 403, Body: "{}"}})
	restored, err := c.List(t.Context(), Caller{}, "a")
	if _, stream := restored["a"].Names["d"]; err != nil || !stream || restored["a"].ID == "u" {
		t.Errorf("%v %v", restored, err)
	}
	if _, err = c.List(t.Context(), Caller{}, "b"); !errors.Is(err, ErrForbidden) {
		t.Errorf("%v", err)
	}
}

// A gateway may choose the tenant by any field: what is asked on a client's behalf has to get where the client's own request went.
func TestACallGoesWhereTheClientsRequestWent(t *testing.T) {
	var fields []wire.Field
	for _, f := range []string{
		"Host: shop.example", "Authorization: Basic x", "X-Tenant: a", "X-Odd: 1", "X-Request-Id: 7", "Accept: application/yaml", "Range: bytes=0-1",
		"If-None-Match: *", "If-Modified-Since: x", "Content-Type: application/json", "Content-Encoding: gzip", "Content-Length: 7",
		"Accept-Encoding: gzip", "Expect: 100-continue", "X-HTTP-Method-Override: PUT", "Optimist-Session: s", "Idempotency-Key: 1", "Digest: x",
	} {
		name, value, _ := strings.Cut(f, ": ")
		fields = append(fields, wire.Field{Name: []byte(name), Value: []byte(value)})
	}
	for _, c := range []struct {
		own           bool
		fields, query string
	}{
		{false, "Accept: application/json|Host: shop.example|Authorization: Basic x|X-Tenant: a|X-Odd: 1|X-Request-Id: 7", "tenant=a&api_key=s"},
		{true, "Accept: application/json|Host: shop.example|X-Tenant: a|X-Odd: 1|X-Request-Id: 7", "tenant=a"},
	} {
		cl, e := newClient(nil)
		caller := Caller{Fields: fields, Params: []byte("tenant=a&api_key=s"), Own: c.own}
		_, _ = cl.Fetch(t.Context(), caller, Document{Ref: doc.Ref{Index: "shop", ID: "1"}}) // there is none
		var got []string
		for _, f := range e.last.Fields {
			got = append(got, string(f.Name)+": "+string(f.Value))
		}
		if text := strings.Join(got, "|"); text != c.fields {
			t.Errorf("own %v: fields %s, want %s", c.own, text, c.fields)
		}
		if target := string(e.last.Target); target != "/shop/_doc/1?_source=true&"+c.query {
			t.Errorf("own %v: %s", c.own, target)
		}
	}
}
