package tree

// Limits bounds what one call may cost. The zero value means the defaults.
type Limits struct {
	// Depth is how many objects and arrays may be nested, 100 by default. The engines take about 1000; more than 100 is
	// rare enough, and dear enough in every later step, to be passed unmerged unless somebody asks for it.
	Depth int
	// Bytes is the largest document, and the largest result, in bytes. Default 100 MiB, the engines' own limit for a
	// request.
	Bytes int
	// Growth is how many bytes edits may add to a document, also those that they take away again: what edits copy could double it
	// with each. Default 16 MiB, which is what a guarded body may have.
	Growth int
	// Values is how many values (objects, arrays, strings, …) a document may have, about a million by default. Each costs
	// 40 bytes while a call runs.
	Values int
	// Cells bounds the comparison of two arrays: the product of the numbers of elements that are left when the common
	// ends, and the elements that occur on one side only, are taken away. About a million by default, which is some
	// milliseconds. An array over it is one value; so is what comes after arrays that together took 16 times as much.
	Cells int
	// Room is where the call takes its memory from; nil: there is no limit. Its error ends the call, and is the call's.
	Room Room
}

// Room is memory that several calls share. It may be used by several goroutines.
type Room interface {
	// Take takes n bytes, or returns an error and takes none.
	Take(n int64) error
}

// Take takes n bytes of the room. Its errors are those of the room.
func (l *Limits) Take(n int) error {
	if l.Room == nil {
		return nil
	}
	return l.Room.Take(int64(n))
}

// roomOfValue is how many bytes a value needs: its node, and what is made of the values of an array that is compared.
const roomOfValue = 128

// Defaults of Limits.
const (
	DefaultDepth  = 100
	DefaultBytes  = 100 << 20
	DefaultGrowth = 16 << 20
	DefaultValues = 1 << 20
	DefaultCells  = 1 << 20
)

// maxBytes is what an int32 offset can address; maxCells keeps the longest common subsequence of any two arrays below
// 1<<16, which is the width of a cell.
const (
	maxBytes = 1<<31 - 1
	maxCells = 1<<32 - 1
)

// WithDefaults fills in zero limits, and lowers limits that the representation can't hold.
func (l Limits) WithDefaults() Limits {
	l.Depth = orDefault(l.Depth, DefaultDepth, 1<<15)
	l.Bytes = orDefault(l.Bytes, DefaultBytes, maxBytes)
	l.Growth = orDefault(l.Growth, DefaultGrowth, maxBytes)
	l.Values = orDefault(l.Values, DefaultValues, maxBytes)
	l.Cells = orDefault(l.Cells, DefaultCells, maxCells)
	return l
}

func orDefault(n, def, most int) int {
	if n <= 0 {
		n = def
	}
	return min(n, most)
}
