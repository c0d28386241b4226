// Package tree reads JSON documents into values that know their bytes, and compares them.
//
// A document is in UTF-8. Strings are equal if their contents are, however escaped; half a surrogate pair is a content like any
// other. Numbers are equal if their decimal values are: 1.0, 1 and 10e-1 are one number, 0 and -0, too. Objects are equal whatever
// the order of their keys; of duplicate keys the last counts, and hides the others. Arrays are equal element by element. A missing
// value is not null. No number ever becomes a float64.
package tree
