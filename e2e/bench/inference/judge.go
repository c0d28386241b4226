package inference

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"

	"optimist/rewrite/merge"
)

// truth is what a client really made its write from. Nobody tells the proxy.
type truth struct {
	view    []byte // what it had seen; nil: no document
	sent    []byte // the document that it has made of that
	applied bool   // the same was written before: the client repeats it
	whole   bool   // the client has seen nothing: what it sent is to be there
}

// Tally is what became of the writes of one run.
type Tally struct {
	Changes  int // acknowledged, repeats not counted
	Lost     int // changes that are gone, though they were acknowledged
	Invented int // changes that nobody made
	Refused  int // writes that were answered with an error
	Wrong    int // writes after which the document says something else than it would with the right base
	Silent   int // of those, the ones whose answer didn't say ambiguous
	Doubts   int // right ones whose answer said ambiguous
	Ranked   int // choices among several reads
	Lasting  int // lost or invented changes that show in the document at the end: a later write may make good what an earlier one did
	Errors   []error

	ideal []byte // the document that the right bases make; nil: there is none
	units map[string]float64
	sent  func(view, sent []byte) // is called for each change that is acknowledged; nil: nobody looks
}

// Add adds the figures of another run.
func (t *Tally) Add(o *Tally) {
	t.Changes += o.Changes
	t.Lost += o.Lost
	t.Invented += o.Invented
	t.Refused += o.Refused
	t.Wrong += o.Wrong
	t.Silent += o.Silent
	t.Doubts += o.Doubts
	t.Ranked += o.Ranked
	t.Lasting += o.Lasting
	t.Errors = append(t.Errors, o.Errors...)
}

// verdict is about one acknowledged write.
type verdict struct {
	merger        *merge.Merger
	truth         *truth
	before, after []byte // the document
	ambiguous     bool   // the answer said that the base was a guess
}

// judge compares what a write has made of the document with what it should have: what the merge makes of it with the right base.
func (t *Tally) judge(v *verdict) {
	want := v.before
	if !v.truth.applied {
		t.Changes++
		if t.sent != nil {
			t.sent(v.truth.view, v.truth.sent)
		}
		var err, idealErr error
		want, err = v.on(v.before)
		t.ideal, idealErr = v.on(t.ideal)
		if err = errors.Join(err, idealErr); err != nil {
			t.Errors = append(t.Errors, err)
			return
		}
	}
	v.truth.applied = true
	c := t.compare(want, v.after, v.before)
	lost, invented := c.sum()
	t.Lost += lost
	t.Invented += invented
	switch {
	case c.differs:
		t.Wrong++
		if !v.ambiguous {
			t.Silent++
		}
	case v.ambiguous:
		t.Doubts++
	}
}

// on makes of a document what the client of the write has made of its base.
func (v *verdict) on(document []byte) ([]byte, error) {
	if document == nil || v.truth.whole {
		return v.truth.sent, nil
	}
	r, err := v.merger.Merge(v.truth.view, v.truth.sent, document)
	return r.Doc, err
}

// end compares the document at the end with the one that the right bases make of the first.
func (t *Tally) end(document []byte) {
	c := t.compare(t.ideal, document, nil)
	lost, invented := c.sum()
	t.Lasting = lost + invented
}

// compare compares the document that should be there with the one that is; before is the one that was there before.
func (t *Tally) compare(want, got, before []byte) comparison {
	c := comparison{units: t.units}
	if !bytes.Equal(want, got) {
		c.value("", decode(want), decode(got), decode(before))
	}
	return c
}

func decode(data []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if data == nil || d.Decode(&v) != nil {
		return map[string]any{}
	}
	return v
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of what was decoded, or made here
	}
	return data
}

// comparison counts what is in one document and not in the other. One change shows in several places, as an entry and in the number of
// entries: of entries, values and sums the most count.
type comparison struct {
	units   map[string]float64 // how much one change moves a number that is a sum, by the last name of its path; 0: it says nothing
	differs bool

	entries, values, sums struct{ lost, invented int }
}

func (c *comparison) sum() (lost, invented int) {
	return max(c.entries.lost, c.values.lost, c.sums.lost), max(c.entries.invented, c.values.invented, c.sums.invented)
}

// value compares what should be there with what is; before is what was there before the write.
func (c *comparison) value(name string, want, got, before any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			b, _ := before.(map[string]any)
			c.object(w, g, b)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			c.array(w, g)
			return
		}
	}
	if bytes.Equal(encode(want), encode(got)) {
		return
	}
	c.differs = true
	switch unit, isSum := c.units[name]; {
	case isSum && unit > 0:
		c.moved(unit, want, got, before)
	case !isSum:
		c.values.lost++
	}
}

func (c *comparison) object(want, got, before map[string]any) {
	for k, w := range want {
		g, ok := got[k]
		if !ok {
			c.differs = true
			c.values.lost++
			continue
		}
		c.value(k, w, g, before[k])
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			c.differs = true
			c.values.invented++
		}
	}
}

// array compares the elements, in whatever order they are.
func (c *comparison) array(want, got []any) {
	count := make(map[string]int)
	for _, e := range want {
		count[string(encode(e))]++
	}
	for _, e := range got {
		count[string(encode(e))]--
	}
	missing, more := 0, 0
	for _, n := range count {
		missing += max(n, 0)
		more += max(-n, 0)
	}
	c.differs = c.differs || missing+more > 0
	c.entries.lost += missing
	c.entries.invented += max(more-missing, 0) // an element in the place of another is that one, with a change of it lost
}

func (c *comparison) moved(unit float64, want, got, before any) {
	w, g := number(want)-number(before), number(got)-number(before)
	n := int(math.Ceil(math.Min(math.Abs(w-g)/unit, 1e9)))
	if math.Abs(g) < math.Abs(w) && g*w >= 0 {
		c.sums.lost += n
	} else {
		c.sums.invented += n
	}
}

func number(v any) float64 {
	n, _ := v.(json.Number)
	f, _ := n.Float64()
	return f
}
