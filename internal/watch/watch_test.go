package watch

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/wire"
)

func TestCaptureReadsGzippedAnswers(t *testing.T) {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	_, _ = gz.Write([]byte(`{"_index":"shop","_id":"1","_version":1,"_seq_no":7,"_primary_term":2,"found":true,"_source":{"a":1}}`))
	_ = gz.Close()
	z := b.Bytes()
	c := NewCapture(nil, 1<<20)
	h := &wire.Head{Status: 200, Length: int64(len(z)), Fields: []wire.Field{
		{Name: []byte("content-type"), Value: []byte("application/json")}, {Name: []byte("content-encoding"), Value: []byte("gzip")}}}
	ended := 0
	c.Whole = func() { ended++ }
	c.Head(h, nil)
	if it := c.beginning(z[:len(z)/2+20]); it.Numbered && it.Numbers != (doc.Numbers{SeqNo: 7, PrimaryTerm: 2}) {
		t.Errorf("of its beginning the numbers are %v", it.Numbers)
	}
	c.Copy(z[:10])
	c.Copy(z[10:])
	c.Last()
	c.Last()
	body, ok := c.Body()
	if !ok || gjson.GetBytes(body, "_source.a").Int() != 1 || ended != 1 {
		t.Errorf("%s %v, ended %d times", body, ok, ended)
	}
}

func TestNumbersCutOffAreNoETag(t *testing.T) {
	var c Capture
	whole := `{"_index":"shop","_id":"1","_version":1,"_seq_no":17,"_primary_term":23,"found":true,"_source":{"_seq_no":1,"_primary_term":1}}`
	for i := range whole {
		it := c.beginning([]byte(whole[:i]))
		if it.Numbered && (it.SeqNo != 17 || it.PrimaryTerm != 23) {
			t.Errorf("cut at %d: %v from %s", i, it.Numbers, whole[:i])
		}
	}
	if it := c.beginning([]byte(whole)); !it.Numbered || it.SeqNo != 17 {
		t.Errorf("%v", it.Numbers)
	}
	if it := c.beginning([]byte(`{"found":true,"_source":{"_seq_no":1,"_primary_term":1}}`)); it.Numbered {
		t.Error("a document's own field was taken for its number")
	}
}

func TestASearchWhoseBodyIsInItsQueryIsNoBase(t *testing.T) {
	for _, q := range []string{"source=%7B%22_source%22%3A%5B%22a%22%5D%7D&source_content_type=application/json", "_source_excludes=a", "stored_fields=a"} {
		if !Partial([]byte(q)) {
			t.Errorf("%s", q)
		}
	}
}

// Of a document that is too large to be looked at, as it comes or decoded, the numbers are known: what the session had read before is not
// its base.
func TestALargeReadReplacesTheOneBefore(t *testing.T) {
	plain := `{"_index":"shop","_id":"1","_version":1,"_seq_no":7,"_primary_term":2,"found":true,"_source":{"a":"` +
		strings.Repeat("x", 5000) + `"}}`
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	_, _ = gz.Write([]byte(plain))
	_ = gz.Close()
	for name, body := range map[string]string{"identity": plain, "gzip": b.String()} {
		c := NewCapture(nil, 4096)
		h := &wire.Head{Status: 200, Length: -1, Fields: []wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}}
		if name == "gzip" {
			h.Fields = append(h.Fields, wire.Field{Name: []byte("content-encoding"), Value: []byte(name)})
		}
		c.Head(h, nil)
		c.Copy([]byte(body[:90]))
		c.Copy([]byte(body[90:]))
		if _, ok := c.Body(); ok {
			t.Errorf("%s: a body that isn't whole", name)
		}
		if want := (doc.Numbers{SeqNo: 7, PrimaryTerm: 2}); c.numbers != want {
			t.Errorf("%s: %v", name, c.numbers)
		}
	}
}
