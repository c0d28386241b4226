// Package jsontext reads JSON as text, without a tree: whether it is JSON, the members of an object where they stand, JSON Pointers.
//
// It promises nothing about what the text means to the engine.
package jsontext
