package rewrite

import (
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// benchDocs yields a base as an engine gives it, the same document as a client's library writes it back with a few changes,
// and a current document that others have changed.
func benchDocs(size int) (base, sent, current []byte) {
	var b strings.Builder
	b.WriteString(`{"id":"order-4711","status":"open","total":1299.90,"count":17,"tags":["new","web","gift"],"address":{"street":"Main Street 1","zip":"12345","city":"Springfield"},"lines":[`)
	for i := 0; b.Len() < size-200; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":"A-%05d","title":"A product with a title","quantity":%d,"price":%d.90}`, i, i%7+1, i*3)
	}
	b.WriteString(`],"note":"please leave it at the door","created_at":"2024-05-01T10:00:00Z","updated_at":"2024-05-01T10:00:00Z"}`)
	s := b.String()
	base = []byte(s)
	sent = []byte(strings.NewReplacer(`"status":"open"`, `"status":"paid"`, `"count":17`, `"count":18`, `"gift"]`, `"gift","paid"]`,
		`"updated_at":"2024-05-01T10:00:00Z"`, `"updated_at":"2024-05-01T11:00:00Z","paid_at":"2024-05-01T11:00:00Z"`).Replace(s))
	current = []byte(strings.NewReplacer(`"count":17`, `"count":19`, `"gift"]`, `"gift","vip"]`, `"quantity":1`, `"quantity":2`,
		`"zip":"12345"`, `"zip":"54321"`).Replace(s))
	return base, sent, current
}

// 0 is a document of some 400 bytes.
var benchSizes = []int{0, 2 << 10, 200 << 10}

func sizeName(size int) string {
	if size == 0 {
		return "small"
	}
	return fmt.Sprintf("%dKB", size>>10)
}

func BenchmarkMerge(b *testing.B) {
	for _, size := range benchSizes {
		base, sent, current := benchDocs(size)
		m := mustMerger(b, Sent, PathRule{Path: "/count", Strategy: Sum}, PathRule{Path: "/tags", Strategy: Union})
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(base)))
			for b.Loop() {
				if res, err := m.Merge(base, sent, current); err != nil || !res.Changed {
					b.Fatal(err)
				}
			}
		})
	}
}

// A client whose library writes white space and its own order of keys: nothing can be told by comparing bytes.
func BenchmarkMergeReserialized(b *testing.B) {
	for _, size := range benchSizes {
		base, sent, current := benchDocs(size)
		sent = []byte(strings.NewReplacer(`,"`, `, "`, `:`, `: `, `{"sku"`, `{ "sku"`).Replace(string(sent)))
		m := mustMerger(b, Sent)
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(base)))
			for b.Loop() {
				if _, err := m.Merge(base, sent, current); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	for _, size := range benchSizes {
		base, sent, _ := benchDocs(size)
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(base)))
			for b.Loop() {
				if _, err := Diff(base, sent); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, size := range benchSizes {
		base, sent, _ := benchDocs(size)
		p, err := Diff(base, sent)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(base)))
			for b.Loop() {
				if _, err := p.Apply(base, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The dearest comparison that the limit lets through: two arrays of a thousand, nothing at its place.
func BenchmarkMergeShuffledArray(b *testing.B) {
	forward := `{"l":[` + series(0, 1000, 1, func(i int) string { return fmt.Sprint(i) }) + `]}`
	mixed := `{"l":[` + series(0, 1000, 1, func(i int) string { return fmt.Sprint(i * 387 % 1000) }) + `]}`
	m := mustMerger(b, Sent)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Merge([]byte(forward), []byte(mixed), []byte(forward)); err != nil {
			b.Fatal(err)
		}
	}
}

// A rule of three steps, as each guarded write of it has them.
func BenchmarkTransform(b *testing.B) {
	for _, size := range benchSizes {
		doc, _, _ := benchDocs(size)
		tr := mustTransformer(b, Limits{},
			Step{Action: OpIncrement, Path: "/count", Value: literal("1")},
			Step{Action: OpUnion, Path: "/tags", Value: literal(`["web","paid"]`)},
			Step{Action: OpNow, Path: "/updated_at"})
		in := testInputs()
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, err := tr.Apply(doc, &in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The same by another implementation of JSON Patch, as far as it has it: no increment, no union.
func BenchmarkTransformElsewhere(b *testing.B) {
	for _, size := range benchSizes {
		doc, _, _ := benchDocs(size)
		p, err := jsonpatch.DecodePatch([]byte(`[{"op":"replace","path":"/count","value":18},{"op":"add","path":"/tags/-","value":"paid"},` +
			`{"op":"add","path":"/updated_at","value":"2024-05-01T10:20:30.004Z"}]`))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, err := p.Apply(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the other implementation is compared with.
func BenchmarkTransformAsJSONPatch(b *testing.B) {
	for _, size := range benchSizes {
		doc, _, _ := benchDocs(size)
		tr := mustTransformer(b, Limits{}, Step{Action: OpReplace, Path: "/count", Value: literal("18")},
			Step{Action: OpAdd, Path: "/tags/-", Value: literal(`"paid"`)}, Step{Action: OpNow, Path: "/updated_at"})
		in := testInputs()
		b.Run(sizeName(size), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, err := tr.Apply(doc, &in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
