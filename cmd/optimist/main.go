// Command optimist is a reverse proxy that keeps concurrent writers of one document from erasing each other's changes in
// Elasticsearch and OpenSearch.
//
// This package is flags, wiring and signals; it decides nothing about requests.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
