// Package ruletest runs users' tests of their own rules: each test puts a document into an engine in memory, has clients read and write it
// through optimist itself, and compares what is stored and answered with what the test expects. It also gives the account of a single
// write for `explain`.
//
// It promises what the rules do, not what an engine of the user's would say to the documents: mappings, pipelines, privileges and several
// proxies are not in it.
package ruletest
