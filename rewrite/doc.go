// Package rewrite computes what a write becomes: base, change, merge and patch as pure functions on JSON bytes.
//
// It does no I/O, keeps no state and promises nothing about when a merged document may be written: that is the guard's
// matter, and the loop's.
package rewrite
