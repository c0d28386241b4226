// Package rewrite holds what is true of the packages below it together: their properties, stories, fuzz targets and benchmarks.
//
// Package tree reads documents into values that know their bytes. Package diff finds the change between two of them, package merge replays
// it on a third, package edit applies patches and the steps of rules. None does I/O, none keeps state, and none knows the engine.
package rewrite
