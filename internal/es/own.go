package es

import (
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
)

// errNoFormat reports an index that isn't one of optimist's own.
var errNoFormat = errors.New("it has no format number in its _meta")

// OwnMeta is the description of an index of optimist's own, in _meta.optimist of its mapping. The mapping is the engine's answer about
// that one index. known is the newest format that this program knows. The error continues a sentence that begins with the index: the
// index isn't of the right kind, or has a newer format.
func OwnMeta(mapping []byte, is string, known int64) (meta gjson.Result, err error) {
	gjson.ParseBytes(mapping).ForEach(func(_, index gjson.Result) bool {
		meta = index.Get("mappings._meta.optimist")
		return false
	})
	switch n := meta.Get("format").Int(); {
	case n == 0:
		return meta, fmt.Errorf("isn't %s: %w", is, errNoFormat)
	case n > known:
		return meta, fmt.Errorf("is of format %d, and this program knows up to %d", n, known)
	}
	return meta, nil
}
