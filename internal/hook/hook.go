// Package hook has functions that may be missing: a call of a nil one does nothing. So structs of optional hooks need no
// defaults.
//
// The struct that has a hook says in the field's comment what the hook's arguments are, and whether it may block.
package hook

// Func1 is a hook with one argument.
type Func1[A any] func(A)

// Call calls it, if it is there.
func (f Func1[A]) Call(a A) {
	if f != nil {
		f(a)
	}
}

// Func2 is a hook with two arguments.
type Func2[A, B any] func(A, B)

// Call calls it, if it is there.
func (f Func2[A, B]) Call(a A, b B) {
	if f != nil {
		f(a, b)
	}
}

// Func3 is a hook with three arguments.
type Func3[A, B, C any] func(A, B, C)

// Call calls it, if it is there.
func (f Func3[A, B, C]) Call(a A, b B, c C) {
	if f != nil {
		f(a, b, c)
	}
}
