package client

import (
	"net/netip"
	"strings"
	"testing"

	"optimist/internal/wire"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

func TestTraceparentsAreReadAsTheyAreDefined(t *testing.T) {
	for value, valid := range map[string]bool{
		"00-" + traceID + "-" + spanID + "-01":                  true,
		"00-" + traceID + "-" + spanID + "-00":                  true,
		" 00-" + traceID + "-" + spanID + "-ff\t":               true,
		"cc-" + traceID + "-" + spanID + "-01":                  true,
		"cc-" + traceID + "-" + spanID + "-01-what-comes-later": true,
		"":                                      false,
		"00":                                    false,
		traceID:                                 false,
		"00-" + traceID + "-" + spanID:          false,
		"00-" + traceID + "-" + spanID + "-1":   false,
		"00-" + traceID + "-" + spanID + "-01-": false,
		"00-" + traceID + "-" + spanID + "-01-what-comes-later":                      false,
		"cc-" + traceID + "-" + spanID + "-01.what-comes-later":                      false,
		"ff-" + traceID + "-" + spanID + "-01":                                       false,
		"0g-" + traceID + "-" + spanID + "-01":                                       false,
		"00-" + strings.ToUpper(traceID) + "-" + spanID + "-01":                      false,
		"00-" + traceID + "-" + strings.ToUpper(spanID) + "-01":                      false,
		"0A-" + traceID + "-" + spanID + "-01":                                       false,
		"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01":                       false,
		"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01":                      false,
		"00-" + traceID + "-" + spanID + "-0z":                                       false,
		"00_" + traceID + "-" + spanID + "-01":                                       false,
		"00-" + traceID + "_" + spanID + "-01":                                       false,
		"00-" + traceID + "-" + spanID + "_01":                                       false,
		"00-" + traceID[1:] + "x-" + spanID + "-01":                                  false,
		"00-" + traceID + "-" + spanID + "-01, 00-" + traceID + "-" + spanID + "-01": false,
	} {
		if got := traceOf([]byte(value)); (got[0] == 0x0a && got[15] == 0x9c) != valid || !valid && got != (traceOf(nil)) {
			t.Errorf("%q: %x", value, got)
		}
	}
}

func TestTheTraceIsOfTheRequestAndANameIsStronger(t *testing.T) {
	peer := netip.MustParseAddrPort("10.0.0.1:4711")
	of := func(id *Identity, nameValue ...string) Client {
		var list []wire.Field
		for i := 0; i < len(nameValue); i += 2 {
			list = append(list, wire.Field{Name: []byte(nameValue[i]), Value: []byte(nameValue[i+1])})
		}
		return id.Of(list, nil, peer, nil)
	}
	const parent = "00-" + traceID + "-" + spanID + "-01"
	id := &Identity{Headers: []string{"Optimist-Session", "X-Thread"}, Traces: true, Infer: true, Address: true}
	for name, c := range map[string]struct {
		got            Client
		named, inTrace bool
	}{
		"no trace":                  {of(id), false, false},
		"a trace":                   {of(id, "TraceParent", parent), false, true},
		"an invalid one":            {of(id, "traceparent", "00-1"), false, false},
		"a name and a trace":        {of(id, "traceparent", parent, "Optimist-Session", "a"), true, false},
		"an empty name":             {of(id, "traceparent", parent, "Optimist-Session", ""), false, true},
		"traces don't count":        {of(&Identity{Infer: true}, "traceparent", parent), false, false},
		"nothing else is a session": {of(&Identity{Traces: true}, "traceparent", parent), false, false},
	} {
		if !c.got.Known || c.got.Session.IsNamed() != c.named || c.got.Session.InTrace() != c.inTrace {
			t.Errorf("%s: %+v", name, c.got.Session)
		}
	}
	alone := &Identity{Traces: true}
	if of(alone).Known {
		t.Error("without a trace there is a session")
	}
	if of(alone, "traceparent", parent).Session == of(alone, "traceparent", "00-1"+traceID[1:]+"-"+spanID+"-01").Session {
		t.Error("two traces are one session")
	}
	a := of(id, "traceparent", parent).Session
	if b := of(id, "traceparent", "00-"+traceID+"-"+strings.Repeat("1", 16)+"-00").Session; a != b {
		t.Error("another span of the trace is another session")
	}
	if b := of(id, "traceparent", "00-1"+traceID[1:]+"-"+spanID+"-01").Session; a == b {
		t.Error("another trace is the same session")
	}
	first, second := of(id, "X-Thread", "b", "Optimist-Session", "a").Session, of(id, "Optimist-Session", "a", "X-Thread", "b").Session
	if want := of(id, "Optimist-Session", "a").Session; first != want || second != want {
		t.Error("the order of the list doesn't decide which of two names counts")
	}
	if !of(id, "X-Thread", "b").Session.IsNamed() {
		t.Error("the second name of the list is none")
	}
}

func TestAConnectionsTraceIsThatOfEachRequest(t *testing.T) {
	id := &Identity{Traces: true, Infer: true, Address: true}
	var s recent
	for _, value := range []string{"00-" + traceID + "-" + spanID + "-01", "00-1" + traceID[1:] + "-" + spanID + "-01", "", "x"} {
		fields := []wire.Field{{Name: []byte("traceparent"), Value: []byte(value)}}
		if got, want := s.of(id, fields, nil, netip.AddrPort{}, nil), id.Of(fields, nil, netip.AddrPort{}, nil); got.Session != want.Session {
			t.Errorf("%q: %+v", value, got.Session)
		}
	}
	fields := []wire.Field{{Name: []byte("traceparent"), Value: []byte("00-" + traceID + "-" + spanID + "-01")}}
	if n := testing.AllocsPerRun(100, func() { s.of(id, fields, nil, netip.AddrPort{}, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
