package stamp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/internal/doc"
)

var one = Stamp{Numbers: doc.Numbers{SeqNo: 7, PrimaryTerm: 1}, Document: DocumentOf("uuid", "", "1"), Copy: IDOf(42)}

func TestStampsAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Stamp{
			Numbers:  doc.Numbers{SeqNo: rapid.Int64Min(0).Draw(t, "seq"), PrimaryTerm: rapid.Int64Min(1).Draw(t, "term")},
			Document: DocumentOf(rapid.String().Draw(t, "uuid"), rapid.String().Draw(t, "routing"), rapid.String().Draw(t, "id")),
		}
		if rapid.Bool().Draw(t, "told apart") {
			s.Copy = IDOf(rapid.Uint64().Draw(t, "copy"))
		}
		if got, ok := Parse(s.Append(nil)); !ok || got != s {
			t.Errorf("%s: %+v, not %+v", s.Append(nil), got, s)
		}
	})
}

func TestWhatIsNoStampIsNoStamp(t *testing.T) {
	good := string(one.Append(nil))
	for _, text := range []string{
		"", "-", "---", "7-1", "7-1-", good + "-", good + "-0", " " + good, good + " ", "+" + good, "-" + good, "0" + good, "7-0-" + good[4:], "7-01-" + good[4:],
		strings.ToUpper(good), good[:len(good)-1], good + "0", "9223372036854775808-1-" + good[4:], "7.0-1-" + good[4:], "7-1-0123456789-0000000000",
	} {
		if s, ok := Parse([]byte(text)); ok {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func TestDocumentsAreToldApart(t *testing.T) {
	seen := map[ID]string{}
	for _, d := range [][3]string{{"u", "", "1"}, {"u", "1", ""}, {"u1", "", ""}, {"v", "", "1"}, {"u", "r", "1"}, {"u", "", "2"}, {"", "u", "1"}} {
		id := DocumentOf(d[0], d[1], d[2])
		if other, taken := seen[id]; taken {
			t.Errorf("%q and %q", d, other)
		}
		seen[id] = strings.Join(d[:], "/")
	}
}

func TestAStampIsTheLastMemberAndNothingElseChanges(t *testing.T) {
	s := string(one.Append(nil))
	for document, want := range map[string]string{
		`{}`:                             `{"_rev":"S"}`,
		" { } ":                          ` {"_rev":"S" } `,
		`{"a":1}`:                        `{"a":1,"_rev":"S"}`,
		"{\n  \"a\" : 1.50\n}\n":         "{\n  \"a\" : 1.50,\"_rev\":\"S\"\n}\n",
		`{"a":{"_rev":1},"b":["_rev"]}`:  `{"a":{"_rev":1},"b":["_rev"],"_rev":"S"}`,
		`{"a":"}","b":"{"}`:              `{"a":"}","b":"{","_rev":"S"}`,
		`{"_rev":"theirs"}`:              `{"_rev":"S"}`,
		`{"_rev":"theirs", "a":1}`:       `{ "a":1,"_rev":"S"}`,
		`{"a":1,"_rev":{"x":[1]},"b":2}`: `{"a":1,"b":2,"_rev":"S"}`,
	} {
		got, ok := Put([]byte("before "), []byte(document), "_rev", one)
		if want := "before " + strings.ReplaceAll(want, "S", s); !ok || string(got) != want {
			t.Errorf("%s:\n%s, not\n%s", document, got, want)
		}
	}
	for _, document := range []string{``, `null`, `[]`, `"a"`, `{`, `{"a"}`, `{"a":1,}`, `{"a":1}}`, `{"a":1} {}`, `{'a':1}`, "{/**/}"} {
		if got, ok := Put([]byte("x"), []byte(document), "_rev", one); ok || string(got) != "x" {
			t.Errorf("%s: %s", document, got)
		}
	}
}

func TestWhatIsTakenOutIsOneFieldAtTheTop(t *testing.T) {
	for document, want := range map[string]struct{ rest, value string }{
		`{"a":1}`:                                      {`{"a":1}`, ""},
		`{"_rev":"x"}`:                                 {`{}`, `"x"`},
		`{ "_rev" : "x" }`:                             {`{  }`, `"x"`},
		`{"_rev":"x","a":1}`:                           {`{"a":1}`, `"x"`},
		"{\n \"_rev\": \"x\",\n \"a\": 1\n}":           {"{\n \n \"a\": 1\n}", `"x"`},
		"{\n \"a\": 1,\n \"_rev\": \"x\"\n}":           {"{\n \"a\": 1\n}", `"x"`},
		`{"a":1,"_rev":"x","b":2}`:                     {`{"a":1,"b":2}`, `"x"`},
		`{"a":1 , "_rev":"x" , "b":2}`:                 {`{"a":1  , "b":2}`, `"x"`},
		`{"_rev":"x","_rev":"x"}`:                      {`{}`, `"x"`},
		`{"_rev":1,"a":0,"_rev":2,"_rev":3,"b":0}`:     {`{"a":0,"b":0}`, `3`},
		`{"a":0,"_rev":1,"_rev":2}`:                    {`{"a":0}`, `2`},
		`{"_rev":1,"_rev":2,"a":0}`:                    {`{"a":0}`, `2`},
		`{"\u005frev":"x","a":1}`:                      {`{"a":1}`, `"x"`},
		`{"a":{"_rev":"x"},"b":[{"_rev":1}]}`:          {`{"a":{"_rev":"x"},"b":[{"_rev":1}]}`, ""},
		`{"_rev2":1,"x_rev":2,"a":"_rev"}`:             {`{"_rev2":1,"x_rev":2,"a":"_rev"}`, ""},
		`{"a":"\"_rev\":1,","\\u005frev":1}`:           {`{"a":"\"_rev\":1,","\\u005frev":1}`, ""},
		`{"a":9007199254740993.10,"_rev":{"x":["}"]}}`: {`{"a":9007199254740993.10}`, `{"x":["}"]}`},
	} {
		rest, taken, ok := Take([]byte(document), "_rev")
		if !ok || string(rest) != want.rest || string(taken.Value) != want.value {
			t.Errorf("%s:\n%s %s %v, not\n%s %s", document, rest, taken.Value, ok, want.rest, want.value)
		}
	}
	for _, document := range []string{``, `[{"_rev":1}]`, `{"_rev":1`, `{"_rev":1,}`, `{"_rev":1}x`, `{"_rev"}`} {
		if rest, _, ok := Take([]byte(document), "_rev"); ok || string(rest) != document {
			t.Errorf("%s: %s", document, rest)
		}
	}
}

func TestStampsAreTakenOutOfWhatAnUpdateHas(t *testing.T) {
	for body, want := range map[string]struct{ rest, value string }{
		`{"doc":{"a":1,"_rev":"x"},"upsert":{"_rev":"y"}}`:         {`{"doc":{"a":1},"upsert":{"_rev":"y"}}`, `"x"`},
		`{"_rev":"x","doc":{"a":{"_rev":1}}}`:                      {`{"_rev":"x","doc":{"a":{"_rev":1}}}`, ""},
		`{"script":{"params":{"_rev":1}} , "doc" : {"_rev":"x"} }`: {`{"script":{"params":{"_rev":1}} , "doc" : {} }`, `"x"`},
		`{"doc":"_rev"}`: {`{"doc":"_rev"}`, ""},
		`{"doc":{"_rev":1},"d\u006fc":{"_rev":2,"b":1}, "end":[{}]}`: {`{"doc":{},"d\u006fc":{"b":1}, "end":[{}]}`, "2"},
	} {
		rest, taken, ok := TakeIn([]byte(body), "doc", "_rev")
		if !ok || string(rest) != want.rest || string(taken.Value) != want.value {
			t.Errorf("%s:\n%s %s %v", body, rest, taken.Value, ok)
		}
	}
	if rest, _, ok := TakeIn([]byte(`{"doc":{"_rev":1}`), "doc", "_rev"); ok || string(rest) != `{"doc":{"_rev":1}` {
		t.Errorf("%s", rest)
	}
}

func TestOnlyAStampIsABase(t *testing.T) {
	text := string(one.Append(nil))
	for value, want := range map[string][2]bool{ // found, ok
		``:                                  {false, false},
		`"_rev":null`:                       {false, false},
		`"_rev":null,"_rev":null`:           {false, false},
		`"_rev":"` + text + `"`:             {true, true},
		`"_rev":"\u0037` + text[1:] + `"`:   {true, true},
		`"_rev":7`:                          {true, false},
		`"_rev":""`:                         {true, false},
		`"_rev":"7"`:                        {true, false},
		`"_rev":["` + text + `"]`:           {true, false},
		`"_rev":null,"_rev":"` + text + `"`: {true, false},
		`"_rev":"` + text + `","_rev":1`:    {true, false},
	} {
		_, taken, ok := Take([]byte(`{`+value+`}`), "_rev")
		s, found, is := taken.Stamp()
		if !ok || found != want[0] || is != want[1] || is && s != one {
			t.Errorf("%s: found %v, a stamp %v: %+v", value, found, is, s)
		}
	}
}

// objects are JSON objects as clients write them: any white space, escapes, names that are nearly the field's.
func objects() *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", " ", "\n  ", "\t", "\r\n"})
	key := rapid.SampledFrom([]string{`"a"`, `"b"`, `"_rev2"`, `"rev"`, `"_re\u0076x"`, `"\"_rev\""`, `"ü"`, `""`})
	value := rapid.SampledFrom([]string{`1`, `-0.0`, `9007199254740993`, `1e400`, `"_rev"`, `"}"`, `"\\"`, `"\\\""`, `null`, `true`, `{}`, `[]`,
		`{"_rev":"x"}`, `[{"_rev":1},"]"]`, `{"a":{"b":[1,{}]}}`, `"{\"_rev\":1}"`})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		w := func() { b.WriteString(space.Draw(t, "space")) }
		w()
		b.WriteByte('{')
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			if i > 0 {
				b.WriteByte(',')
			}
			w()
			b.WriteString(key.Draw(t, "key"))
			w()
			b.WriteByte(':')
			w()
			b.WriteString(value.Draw(t, "value"))
			w()
		}
		if b.Len() > 0 {
			w()
		}
		b.WriteByte('}')
		w()
		return b.String()
	})
}

func TestWhatIsPutInIsTakenOutToTheByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := objects().Draw(t, "document")
		field := rapid.SampledFrom([]string{"_rev", "_version", "größe", "a b", "<&>"}).Draw(t, "field")
		put, ok := Put(nil, []byte(document), field, one)
		if !ok || !json.Valid(put) {
			t.Fatalf("%s: %s %v", document, put, ok)
		}
		rest, taken, ok := Take(put, field)
		if s, _, is := taken.Stamp(); !ok || string(rest) != document || !is || s != one {
			t.Fatalf("%s:\n%s\n%s %+v", document, put, rest, s)
		}
		again, ok := Put(nil, put, field, Stamp{Numbers: doc.Numbers{PrimaryTerm: 1}})
		if rest, _, _ = Take(again, field); !ok || string(rest) != document {
			t.Fatalf("a second stamp replaces the first: %s", again)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(one.Append(nil))
	f.Add([]byte("7-1-0123456789"))
	f.Add([]byte("9223372036854775807-1-vvvvvvvvvv-vvvvvvvvvv"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, ok := Parse(text)
		if ok && (!bytes.Equal(s.Append(nil), text) || !s.Known() || s.SeqNo < 0) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

// FuzzTake compares with a parser that knows all of JSON.
func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"a":{"_rev":1},"_rev":"x","b":[1,{"c":null}],"_rev":2}`))
	f.Add([]byte(`{ "\u005frev" : "\"" , "a":"\\" }`))
	f.Add([]byte(`{"_rev":1`))
	f.Fuzz(func(t *testing.T, document []byte) {
		before := bytes.Clone(document)
		rest, _, ok := Take(document, "_rev")
		put, can := Put(nil, document, "_rev", one)
		if !bytes.Equal(before, document) {
			t.Fatalf("the document itself was changed: %q", document)
		}
		var members map[string]json.RawMessage
		if !json.Valid(document) || json.Unmarshal(document, &members) != nil || members == nil {
			return // whatever it is, it mustn't panic
		}
		if !ok || !can || !json.Valid(rest) || !json.Valid(put) {
			t.Fatalf("%q: %q %v, %q %v", document, rest, ok, put, can)
		}
		var left, stamped map[string]json.RawMessage
		if json.Unmarshal(rest, &left) != nil || json.Unmarshal(put, &stamped) != nil {
			t.Fatalf("%q: %q %q", document, rest, put)
		}
		if string(stamped["_rev"]) != `"`+string(one.Append(nil))+`"` {
			t.Errorf("%q: %q", document, put)
		}
		delete(members, "_rev")
		delete(stamped, "_rev")
		for _, m := range []map[string]json.RawMessage{left, stamped} {
			if len(m) != len(members) {
				t.Fatalf("%q: %q %q", document, rest, put)
			}
			for k, v := range members {
				if !bytes.Equal(m[k], v) {
					t.Errorf("%q: %s of %q is %s", document, v, k, m[k])
				}
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	document := []byte(`{"name":"` + strings.Repeat("tea ", 2000) + `","stock":10,"tags":["a","b"]}`)
	buf := make([]byte, 0, 2*len(document))
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Put(buf, document, "_rev", one); !ok {
			b.Fatal()
		}
	}
}
