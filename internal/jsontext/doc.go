// Package jsontext reads JSON as text, without a tree: whether it is JSON, the members of an object where they stand, JSON Pointers; and
// writes it as people read it.
//
// It promises nothing about what the text means to the engine.
package jsontext
