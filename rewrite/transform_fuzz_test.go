package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"optimist/rewrite/tree"
)

// fuzzSteps are the bodies of the stories, and what is not quite one.
func fuzzSteps(f *testing.F) (bodies []string) {
	for _, s := range readTransformStories(f) {
		body := "["
		for i, step := range s.steps {
			if i > 0 {
				body += ","
			}
			body += step
		}
		bodies = append(bodies, body+"]")
	}
	return append(bodies, `[]`, `{}`, `[1]`, `[{"op":"add"}]`, `[{"op":"test","path":"/*","value":{"from":"now"},"format":"epoch_second"}]`,
		`[{"op":"\u0061dd","path":"/\ud800","value":{"literal":[]}}]`)
}

func FuzzParseSteps(f *testing.F) {
	for _, body := range fuzzSteps(f) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		steps, err := ParseSteps(body, fuzzLimits)
		if !bytes.Equal(body, before) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if !knownToApply(err) {
				t.Fatal(err)
			}
			return
		}
		clear(body) // nothing of it is kept
		if _, err := NewTransformer(steps, fuzzLimits); err != nil {
			var e *StepError
			if !errors.As(err, &e) || e.Reason == "" {
				t.Fatal(err)
			}
		}
		for _, s := range steps {
			if !takesValue(s.Action) || s.Value.Source != FromLiteral {
				continue
			}
			again := append(append([]byte(`[{"op":"add","path":"/a","value":{"literal":`), s.Value.Literal...), `}}]`...)
			if same, err := ParseSteps(again, Limits{}); err != nil || !bytes.Equal(same[0].Value.Literal, s.Value.Literal) {
				t.Fatalf("%q: %v", s.Value.Literal, err)
			}
		}
	})
}

func FuzzTransform(f *testing.F) {
	bodies := fuzzSteps(f)
	for i, body := range bodies {
		f.Add([]byte(fuzzDocs[i%len(fuzzDocs)]), []byte(body), []byte(fuzzDocs[(i+1)%len(fuzzDocs)]))
	}
	for _, s := range readTransformStories(f) {
		for _, step := range s.steps {
			f.Add([]byte(s.doc), []byte("["+step+"]"), s.in.Incoming)
		}
	}
	in := testInputs()
	f.Fuzz(func(t *testing.T, doc, body, incoming []byte) {
		steps, err := ParseSteps(body, fuzzLimits)
		if err != nil {
			return
		}
		tr, err := NewTransformer(steps, fuzzLimits)
		if err != nil {
			return
		}
		in := in
		in.Incoming, in.Current = incoming, doc
		before := bytes.Clone(doc)
		got, err := tr.Apply(doc, &in)
		if !bytes.Equal(doc, before) {
			t.Fatal("the candidate itself was changed")
		}
		if err != nil {
			if !knownToApply(err) {
				t.Fatal(err)
			}
			return
		}
		var parsed tree.Tree
		if err := parsed.ParseObject(got, Limits{Depth: fuzzLimits.Depth}); err != nil {
			t.Fatalf("%q with %s became %q: %v", doc, body, got, err)
		}
		if len(got) > fuzzLimits.Bytes {
			t.Fatalf("%d bytes", len(got))
		}
		if again, err := tr.Apply(doc, &in); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("the same again gave %q instead of %q: %v", again, got, err)
		}
	})
}

// spelled is decode without a look at numbers: what a merge patch sets is spelled as it was, and may be 1e999999999.
func spelled(t tb, src []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", src, err)
	}
	return v
}

func FuzzMergePatch(f *testing.F) {
	for _, doc := range fuzzDocs {
		for _, patch := range fuzzDocs {
			f.Add([]byte(doc), []byte(patch))
		}
		f.Add([]byte(doc), []byte(`{"a":null,"b":{"c":null,"d":[null]},"a":1}`))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		got, err := MergePatch(doc, patch, fuzzLimits)
		if err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		if utf8.Valid(doc) && utf8.Valid(patch) && !bytes.Contains(doc, []byte(`\u`)) && !bytes.Contains(patch, []byte(`\u`)) {
			// Else encoding/json would take different keys for one.
			if want := mergePatchModel(spelled(t, doc), spelled(t, patch)); !alike(spelled(t, got), want) {
				t.Fatalf("%q with %q became %q", doc, patch, got)
			}
		}
		again, err := MergePatch(got, patch, Limits{})
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q with %q became %q, and then %q", doc, patch, got, again)
		}
	})
}
