package rewrite

import "testing"

func TestSmoke(t *testing.T) {
	m, err := NewMerger(Sent, []PathRule{{Path: "/stock", Strategy: Sum}, {Path: "/tags", Strategy: Union}, {Path: "/lines", Strategy: ByKey, Key: "sku"}, {Path: "/lines/*/n", Strategy: Sum}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{`{"stock":10}`, `{"stock":9}`, `{"stock":7}`},
		{`{"a":1,"b":2}`, `{"a":1,"b":3,"c":4}`, ` { "b":2, "a":5 } `},
		{`{"l":[1,2]}`, `{"l":[1,2,3]}`, `{"l":[1,2,4]}`},
		{`{"l":[3,1,2]}`, `{"l":[1,2,3]}`, `{"l":[1,2,3]}`},
		{`{"l":[{"a":1,"b":1},{"x":1}]}`, `{"l":[{"a":2,"b":1},{"x":2}]}`, `{"l":[{"a":1,"b":3},{"x":1}]}`},
		{`{"tags":["a","b"]}`, `{"tags":["a","c"]}`, `{"tags":["a","b","d"]}`},
		{`{"tags":["a","b"]}`, `{}`, `{"tags":["a","b","d"],"z":1}`},
		{`{"tags":["a","b"]}`, `{"tags":["x"]}`, `{}`},
		{`{"lines":[{"sku":1,"n":1},{"sku":2,"n":1}]}`, `{"lines":[{"sku":1,"n":2},{"sku":2,"n":1},{"sku":3}]}`, `{"lines":[{"sku":2,"n":7},{"sku":1,"n":5}]}`},
	} {
		r, err := m.Merge([]byte(c[0]), []byte(c[1]), []byte(c[2]))
		t.Logf("%s %s %s\n   -> %s %v %v", c[0], c[1], c[2], r.Doc, r.Overwritten, err)
	}
}
