// Package jsontext reads JSON as text, without a tree: JSON Pointers.
//
// It promises nothing about what the text means to the engine.
package jsontext
