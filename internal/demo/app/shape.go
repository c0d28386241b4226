package app

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Shape is what the workers do to the document.
type Shape uint8

const (
	// Fields: each worker counts in fields of its own.
	Fields Shape = iota
	// Counter: all workers count in one field.
	Counter
	// List: each worker appends entries to one list.
	List
	// Cart: each worker appends entries to one list, counts them, and sets the time. It is none of the demonstration's, and nor are those
	// that follow.
	Cart
	// Order: each worker appends lines to one list, adds to the total, counts in a field of its own, and writes who was last.
	Order
	// Ticket: each worker appends comments, sets the status, or both, and sets the time.
	Ticket
	// Profile: each worker sets one of its fields to another text.
	Profile
)

// Documents are those that people have: what one worker changes stands in several places.
func Documents() []Shape { return []Shape{Cart, Order, Ticket, Profile} }

// Shapes are those of the demonstration.
func Shapes() []Shape { return []Shape{Fields, Counter, List} }

// String is the shape in a word.
func (s Shape) String() string {
	return [...]string{"fields", "counter", "list", "cart", "order", "ticket", "profile"}[s]
}

// CounterPath is the JSON Pointer of the field that the shape Counter counts in: a rule that lets both count names it.
const CounterPath = "/stock"

const (
	counterField = "stock"
	listField    = "history"
	countField   = "count"
	timeField    = "updated_at"
)

// document is a document as applications hold it. Numbers stay as they were written.
type document map[string]any

// unchanging are fields that no worker touches. Their values are hard to carry without damage: more digits than a float has,
// zeros at the end, and signs that encoders like to escape.
func unchanging() document {
	return document{
		"title":  "Zażółć <b>gęślą</b> & \"jaźń\" \U0001F9F5",
		"serial": json.Number("9007199254740993"),
		"price":  json.Number("12.50"),
		"deep":   map[string]any{"a.b": []any{nil, "x"}, "~1/0": []any{[]any{json.Number("1")}, []any{}}},
	}
}

// seed is the document before any change, with room for the workers from first on.
func (s Shape) seed(first, workers int) document {
	d := unchanging()
	switch s {
	case Fields:
		for n := first; n < first+workers; n++ {
			setOwn(d, n, 0)
		}
	case Counter:
		d[counterField] = json.Number("0")
	case List:
		d[listField] = []any{}
	case Cart:
		d[listField], d[countField], d[timeField] = []any{}, json.Number("0"), now()
	case Order:
		seedOrder(d)
	case Ticket:
		seedTicket(d)
	case Profile:
		seedProfile(d, first, workers)
	}
	return d
}

// now is the time as applications write it.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// entries are those that the list has from the start. Their names are no worker's.
func (a *Application) entries() []any {
	list := make([]any, a.Entries)
	for i := range list {
		list[i] = seededEntry + strconv.Itoa(i)
	}
	return list
}

// countEntries looks for those that the list had from the start: no worker takes any out.
func (a *Application) countEntries(d document, r *Result) {
	list, _ := d[listField].([]any)
	found := 0
	for _, e := range list {
		if s, _ := e.(string); strings.HasPrefix(s, seededEntry) {
			found++
		}
	}
	if a.Shape == List && found != a.Entries {
		r.damaged("of %d entries from the start %d are there", a.Entries, found)
	}
}

// seededEntry begins the names of entries that no worker wrote.
const seededEntry = "seed-"

// change applies a worker's change of the size step to the document. It returns the size of what can be counted in the end, and the entries
// that it added, if the shape has some.
func (s Shape) change(d document, worker, round, step int) (size int64, entries []string) {
	size = int64(step)
	switch s {
	case Fields:
		setOwn(d, worker, integer(d[ownField(worker)])+int64(step))
	case Counter:
		d[counterField] = number(integer(d[counterField]) + int64(step))
	case List, Cart:
		list, _ := d[listField].([]any)
		for i := range step {
			e := fmt.Sprintf("w%d-%d.%d", worker, round, i)
			entries = append(entries, e)
			list = append(list, e)
		}
		d[listField] = list
		if s == Cart {
			d[countField], d[timeField] = number(integer(d[countField])+int64(step)), now()
		}
	case Order:
		for i := range step {
			entries = append(entries, changeOrder(d, worker, round+i))
		}
	case Ticket:
		entries = changeTicket(d, worker, round, step)
		size = int64(len(entries))
	case Profile:
		changeProfile(d, worker, round, step)
	}
	return size, entries
}

// Each worker has two fields, and writes the same value into both. If they differ, nobody has written this document.
func ownField(worker int) string  { return fmt.Sprintf("w%02d", worker) }
func ownDouble(worker int) string { return ownField(worker) + "_twice" }

func setOwn(d document, worker int, n int64) {
	d[ownField(worker)] = number(n)
	d[ownDouble(worker)] = number(2 * n)
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// integer reads a number of the document; what isn't there counts as nothing.
func integer(v any) int64 {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return i
}

// count finds out what of the changes is in the document.
func (s Shape) count(d document, accounts []account, r *Result) {
	switch s {
	case Fields:
		countFields(d, accounts, r)
	case Counter:
		r.Found = integer(d[counterField])
		r.Lost = max(r.Acknowledged-r.Found, 0)
		r.Invented = max(r.Found-r.Acknowledged-r.Unknown, 0)
	case List:
		countList(d, accounts, r)
	case Cart:
		countList(d, accounts, r)
		counted := integer(d[countField])
		r.atLeast(r.Acknowledged-counted, counted-r.Acknowledged-r.Unknown)
	case Order:
		countOrder(d, accounts, r)
	case Ticket:
		countList(d, accounts, r)
	case Profile:
		countProfile(d, accounts, r)
	}
	if _, ok := d["title"]; !ok && d["serial"] == nil && d["price"] == nil {
		return // the workers began with nothing
	}
	for key, want := range unchanging() {
		if got := d[key]; !same(got, want) {
			r.damaged("%s is %v", key, got)
		}
	}
}

func countFields(d document, accounts []account, r *Result) {
	for i := range accounts {
		a := &accounts[i]
		found := integer(d[ownField(a.number)])
		r.Found += found
		r.Lost += max(a.acknowledged-found, 0)
		r.Invented += max(found-a.acknowledged-a.unknown, 0)
		if twice := integer(d[ownDouble(a.number)]); twice != 2*found {
			r.damaged("worker %d wrote %d and twice %d together", a.number, found, twice)
		}
	}
}

func countList(d document, accounts []account, r *Result) {
	list, _ := d[listField].([]any)
	found := make(map[string]int, len(list))
	for _, e := range list {
		if s := entryName(e); !strings.HasPrefix(s, seededEntry) {
			found[s]++
		}
	}
	for i := range accounts {
		for _, e := range accounts[i].sure {
			if found[e] == 0 {
				r.lose(e)
				continue
			}
			r.Found++
			found[e]--
		}
		for _, e := range accounts[i].unsure {
			if found[e] > 0 {
				r.Found++
				found[e]--
			}
		}
	}
	for _, n := range found {
		r.Found += int64(n)
		r.Invented += int64(n)
	}
}

// entryName is an entry as the accounts have it: a text as it is, and anything else as JSON.
func entryName(e any) string {
	if s, ok := e.(string); ok {
		return s
	}
	b, _ := json.Marshal(e)
	return string(b)
}

// lose counts a change that is missing.
func (r *Result) lose(name string) {
	const some = 16
	if r.Lost++; r.Lost <= some {
		r.Missing = append(r.Missing, name)
	}
}

// atLeast counts what a second part of the document says of the same changes: a change that is missing in both is one.
func (r *Result) atLeast(lost, invented int64) {
	r.Lost, r.Invented = max(r.Lost, lost), max(r.Invented, invented)
}

// same compares two values as JSON.
func same(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}
