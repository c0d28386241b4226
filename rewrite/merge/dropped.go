package merge

import "optimist/rewrite/tree"

// isDropped reports whether a side has only left an empty value out, or has put one way to say nothing in another's place. Libraries do
// that to each document that they save, for example Go's `omitempty`. So such a change doesn't undo another client's.
func isDropped(from, to tree.Value) bool {
	return saysNothing(to) && (saysNothing(from) || !to.Exists() && isZero(from))
}

// isList reports whether v is an array, or counts as an empty one.
func isList(v tree.Value) bool { return v.Kind() <= tree.Null || v.Kind() == tree.Array }

// isEmptied reports whether one side has nothing in place of the base's array, and the other still has an array. Libraries leave an array
// without elements out, or write null for it.
func isEmptied(b, s, c tree.Value) bool {
	return b.Kind() == tree.Array && (s.Kind() <= tree.Null) != (c.Kind() <= tree.Null)
}

// saysNothing reports whether v is not there, null, [], or an object of such. To the engine's index all of these are the same.
func saysNothing(v tree.Value) bool {
	if v.Kind() == tree.Object {
		m := v.First()
		for m.Exists() && saysNothing(m) {
			m = m.Next()
		}
		return !m.Exists()
	}
	return v.Kind() <= tree.Null || v.Kind() == tree.Array && v.Len() == 0
}

// isZero reports whether v is false, 0 or "".
func isZero(v tree.Value) bool {
	d, isNumber := v.Decimal()
	return v.Kind() == tree.False || isNumber && d.Sign() == 0 || v.Kind() == tree.String && v.IsEmpty()
}
