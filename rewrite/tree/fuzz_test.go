package tree

import (
	"encoding/json"
	"errors"
	"testing"
)

// fuzzLimits are small, so that what the fuzzer finds in a few bytes reaches them.
var fuzzLimits = Limits{Depth: 20, Bytes: 1 << 16, Values: 1 << 12}

func FuzzParser(f *testing.F) {
	for _, d := range []string{
		`{}`, `{"a":1}`, `{"a":1.0,"b":[1,2,{"c":"\u00e9\ud800"}],"a":-0}`, ` { "l" : [ 3 , 1 , 2 ] , "t" : [ "x" ] } `,
		`{"l":[{"k":1,"n":1},{"k":2,"n":1e400}],"o":{"a/b":null,"m~n":{}}}`,
		`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":[],"m":0,"\u0061":1}`,
		`"\u12`, `[1,`, `01`, `-`, `1e+`, "\"\x01\"", `nul`, ``, `{"a"}`, `[[[[]]]]`,
	} {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var tr Tree
		err := tr.Parse(src, fuzzLimits)
		valid := json.Valid(src)
		var syntax *SyntaxError
		bad := errors.As(err, &syntax)
		switch {
		case err == nil && !valid, bad && (valid || syntax.Offset < 0 || syntax.Offset > len(src)):
			t.Fatalf("%q: %v, encoding/json says %v", src, err, valid)
		case err != nil && !bad && !errors.Is(err, ErrTooDeep) && !errors.Is(err, ErrTooLarge):
			t.Fatalf("%q: %v", src, err)
		case err != nil:
			return
		}
		root, same := tr.Root(), tr.Root()
		if !root.Equal(same) || root.Height() > fuzzLimits.Depth || tr.nodes[0].skip != int32(len(tr.nodes)) || root.Next().Exists() {
			t.Fatalf("%q: %+v", src, tr.nodes[0])
		}
		count := 1
		root.Any(func(v Value) bool {
			for c := v.FirstOfAll(); c.Exists(); c = c.NextOfAll() {
				count++
			}
			return false
		})
		for c := root.FirstOfAll(); c.Exists(); c = c.NextOfAll() {
			count++
		}
		if count != tr.Len() {
			t.Fatalf("%q: %d values are somebody's child, of %d", src, count, tr.Len())
		}
		var again Tree
		if err := again.Parse(src, fuzzLimits); err != nil || again.Root().Hash() != root.Hash() {
			t.Fatalf("%q: read twice, it is another document", src)
		}
	})
}
