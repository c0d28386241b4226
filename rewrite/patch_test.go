package rewrite

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// A patchCase is one entry of testdata/patch.json. Doc and Patch may be given as text, where the bytes matter.
type patchCase struct {
	About     string
	Doc       json.RawMessage
	DocText   string
	Patch     json.RawMessage
	PatchText *string
	Result    json.RawMessage // what comes out, as a value
	Bytes     string          // what comes out, byte for byte
	Error     string          // or: patch, test, syntax
	At        int             // the operation that is to blame
	Other     string          // why the other implementation does something else
}

func (c *patchCase) doc() []byte {
	if c.DocText != "" {
		return []byte(c.DocText)
	}
	return compacted(c.Doc)
}

func (c *patchCase) patch() []byte {
	if c.PatchText != nil {
		return []byte(*c.PatchText)
	}
	return compacted(c.Patch)
}

func compacted(src []byte) []byte { return []byte(jsonCompact(src)) }

func readPatchCases(t *testing.T) (cases []patchCase) {
	src, err := os.ReadFile("testdata/patch.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(src, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 150 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

func applyBytes(doc, patch []byte) ([]byte, error) {
	p, err := ParsePatch(patch)
	if err != nil {
		return nil, err
	}
	return p.Apply(doc, Limits{})
}

func TestPatchDoesWhatTheRFCsSay(t *testing.T) {
	for _, c := range readPatchCases(t) {
		t.Run(c.About, func(t *testing.T) {
			got, err := applyBytes(c.doc(), c.patch())
			if c.Error != "" {
				checkPatchError(t, &c, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Bytes != "" && string(got) != c.Bytes {
				t.Errorf("\n got %s\nwant %s", got, c.Bytes)
			}
			if c.Result != nil && !sameDoc(t, got, c.Result) {
				t.Errorf("\n got %s\nwant %s", got, c.Result)
			}
		})
	}
}

func checkPatchError(t *testing.T, c *patchCase, err error) {
	var patch *PatchError
	var test *TestError
	var syntax *SyntaxError
	switch {
	case c.Error == "patch" && errors.As(err, &patch) && patch.Index == c.At && patch.Reason != "":
	case c.Error == "test" && errors.As(err, &test) && test.Index == c.At:
	case c.Error == "syntax" && errors.As(err, &syntax) && syntax.Reason != "":
	default:
		t.Errorf("got %#v, want a %s error at %d", err, c.Error, c.At)
	}
}

// The other implementation knows nothing of ours: where both have the same opinion, a misreading of the RFCs on our part
// would have to be one on theirs, too. Where they differ, the case says why.
func TestPatchAgreesWithAnotherImplementation(t *testing.T) {
	agreed := 0
	for _, c := range readPatchCases(t) {
		t.Run(c.About, func(t *testing.T) {
			same := agrees(t, &c)
			if c.Other != "" && same {
				t.Errorf("the other implementation no longer differs (%s): take the exception out", c.Other)
			}
			if c.Other == "" && !same {
				t.Error("the other implementation differs")
			}
			if same {
				agreed++
			}
		})
	}
	if agreed < 100 {
		t.Errorf("the two agree in %d cases only", agreed)
	}
}

func agrees(t *testing.T, c *patchCase) bool {
	p, err := jsonpatch.DecodePatch(c.patch())
	var got []byte
	if err == nil {
		options := jsonpatch.NewApplyOptions()
		options.SupportNegativeIndices = true
		got, err = p.ApplyWithOptions(c.doc(), options)
	}
	want, ours := applyBytes(c.doc(), c.patch())
	if (err != nil) != (ours != nil) {
		t.Logf("other: %s, %v; ours: %s, %v", got, err, want, ours)
		return false
	}
	if err != nil {
		return true
	}
	if !sameDoc(t, got, want) {
		t.Logf("other: %s; ours: %s", got, want)
		return false
	}
	return true
}

// Operations that were not parsed may hold anything.
func TestApplyRefusesWhatParsePatchWould(t *testing.T) {
	for name, op := range map[string]Operation{
		"unknown operation": {Op: "increment", Path: "/a", Value: []byte("1")},
		"bad path":          {Op: "add", Path: "a", Value: []byte("1")},
		"bad from":          {Op: "move", Path: "/b", From: "/~"},
		"no value":          {Op: "add", Path: "/b"},
		"value is not JSON": {Op: "replace", Path: "/a", Value: []byte("1 2")},
	} {
		t.Run(name, func(t *testing.T) {
			var e *PatchError
			if _, err := (Patch{op}).Apply([]byte(`{"a":1}`), Limits{}); !errors.As(err, &e) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAnOperationThatIsUnknownIsToldWithItsPath: of a hundred operations the one that is meant is found by it.
func TestAnOperationThatIsUnknownIsToldWithItsPath(t *testing.T) {
	_, err := ParsePatch([]byte(`[{"op":"increment","path":"/stock","value":1}]`))
	if want := `patch operation 1 (increment "/stock"): is not an operation of RFC 6902`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPatchIsWrittenAsItIsRead(t *testing.T) {
	const text = `[{"op":"add","path":"/a~1\"\\\u0001","value":{"x": 1.0}},{"op":"remove","path":""},{"op":"move","path":"/b","from":"/\ud800"},` +
		`{"op":"copy","path":"/c","from":"/d"},{"op":"test","path":"/é","value":null},{"op":"replace","path":"/f","value":[]}]`
	p, err := ParsePatch([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.AppendJSON(nil)); got != text {
		t.Errorf("\n got %s\nwant %s", got, text)
	}
	if got, err := json.Marshal(p); err != nil || string(got) != strings.ReplaceAll(text, `{"x": 1.0}`, `{"x":1.0}`) {
		t.Errorf("encoding/json writes %s, %v", got, err)
	}
}

// A patch keeps nothing of the buffer that it was read from, which is the next request's by then.
func TestPatchOutlivesItsBody(t *testing.T) {
	body := []byte(`[{"op":"add","path":"/a","value":"text"}]`)
	p, err := ParsePatch(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got, err := p.Apply([]byte(`{}`), Limits{}); err != nil || string(got) != `{"a":"text"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestDiffOutlivesItsDocuments(t *testing.T) {
	a, b := []byte(`{"x":"one"}`), []byte(`{"x":"two"}`)
	p, err := Diff(a, b)
	if err != nil {
		t.Fatal(err)
	}
	clear(a)
	clear(b)
	const want = `[{"op":"test","path":"/x","value":"one"},{"op":"replace","path":"/x","value":"two"}]`
	if got := string(p.AppendJSON(nil)); got != want {
		t.Errorf("got %s", got)
	}
}

// The tests of a diff fail on a document in which somebody else changed what it changes.
func TestDiffWithTestsFailsOnAnotherRevision(t *testing.T) {
	p, err := Diff([]byte(`{"a":1,"l":[1,2,3]}`), []byte(`{"l":[1,3]}`))
	if err != nil {
		t.Fatal(err)
	}
	for doc, path := range map[string]string{`{"a":2,"l":[1,2,3]}`: "/a", `{"a":1,"l":[0,1,2,3]}`: "/l/1"} {
		var e *TestError
		if _, err := p.Apply([]byte(doc), Limits{}); !errors.As(err, &e) || e.Path != path {
			t.Errorf("%s: got %v", doc, err)
		}
	}
}

// A test looks into an object, which counts its duplicate keys; what is opened after that had lost as many members.
func TestATestTakesNothingOutOfAnObjectWithDuplicateKeys(t *testing.T) {
	p, err := ParsePatch([]byte(`[{"op":"test","path":"/a","value":{"y":3,"x":2}},{"op":"add","path":"/a/z","value":4}]`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"a":{"x":1,"x":2,"y":3,"z":4}}`
	if got, err := p.Apply([]byte(`{"a":{"x":1,"x":2,"y":3}}`), Limits{}); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
