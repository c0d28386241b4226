// Package rewrite holds tests of the packages below it together: their properties, stories, fuzz targets and benchmarks.
//
// Package tree reads documents into values that know their bytes. Package diff finds the change between two documents, package
// merge replays it on a third, package edit applies patches and the steps of rules. None of them does I/O, keeps state, or knows
// the engine.
package rewrite
