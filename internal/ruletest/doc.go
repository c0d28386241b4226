// Package ruletest runs users' tests of their own rules. Each test puts a document into an engine in memory, lets clients read
// and write it through optimist itself, and compares the stored document and the answers with the expected ones. It also gives
// the account of a single write for `explain`.
//
// It shows what the rules do, but not what the user's engine would say to the documents: it has no mappings, pipelines,
// privileges, or several proxies.
package ruletest
