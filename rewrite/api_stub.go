package rewrite

import "errors"

var errNotBuilt = errors.New("rewrite: not built yet")

// MaxPaths bounds the paths that a Result or a ConflictError names.
const MaxPaths = 100

// A Merger merges with one set of strategies. It is immutable and safe for concurrent use.
type Merger struct{ def Strategy }

// NewMerger returns a Merger; a *RuleError says which rule can't be taken.
func NewMerger(def Strategy, paths []PathRule) (*Merger, error) { return &Merger{def: def}, nil }

// A Result is a merged document.
type Result struct {
	Doc             []byte   // current with the edits spliced in; current itself (same slice) when nothing changed
	Changed         bool     // whether Doc differs from current
	Overwritten     []string // JSON Pointers where strategy Sent overwrote a change of somebody else's; at most MaxPaths
	OverwrittenMore int      // how many there were beyond Overwritten
}

// Merge replays the change base→sent on current. A nil base is the absent document.
func (m *Merger) Merge(base, sent, current []byte) (Result, error) { return Result{}, errNotBuilt }

// Repeatable reports whether the change base→sent may be applied twice, given m's strategies.
func (m *Merger) Repeatable(base, sent, current []byte) (bool, error) { return false, errNotBuilt }

// Repeatable is Merger.Repeatable with no strategies.
func Repeatable(base, sent, current []byte) (bool, error) { return false, errNotBuilt }

// A Distance says how far a document is from its base. It is a value; the zero Distance is no difference.
type Distance struct {
	Edits int // array elements count one by one
}

// Compare orders by number of edits, then by total |delta| on numeric paths.
func (d Distance) Compare(o Distance) int { return d.Edits - o.Edits }

// Measure counts the edits from base to sent. A nil base is the absent document.
func Measure(base, sent []byte) (Distance, error) { return Distance{}, errNotBuilt }

// MeasureBelow is Measure, but gives up once the distance is known to have more than limit edits: below is false then.
func MeasureBelow(base, sent []byte, limit int) (d Distance, below bool, err error) {
	return Distance{}, false, errNotBuilt
}

// An Operation is one operation of RFC 6902.
type Operation struct {
	Op    string // add, remove, replace, move, copy, test
	Path  string // JSON Pointer
	From  string // JSON Pointer; of move and copy only
	Value []byte // JSON; of add, replace and test only
}

// A Patch is an RFC 6902 JSON Patch.
type Patch []Operation

// A DiffOption changes how Diff renders.
type DiffOption uint8

// WithTests puts a `test` of the old value before each remove and replace.
const WithTests DiffOption = 1

// Diff returns the patch that turns a into b.
func Diff(a, b []byte, opts ...DiffOption) (Patch, error) { return nil, errNotBuilt }

// ParsePatch reads an application/json-patch+json body.
func ParsePatch(src []byte) (Patch, error) { return nil, errNotBuilt }

// Apply returns doc with the patch applied.
func (p Patch) Apply(doc []byte) ([]byte, error) { return nil, errNotBuilt }

// AppendJSON appends the patch as JSON to dst.
func (p Patch) AppendJSON(dst []byte) []byte { return dst }
