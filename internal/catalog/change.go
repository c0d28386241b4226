package catalog

import (
	"context"
	"maps"
	"slices"

	"optimist/internal/es"
)

// List describes the indices of an expression, to compare them with a later List: see es.Client. The question has the client's
// credentials, never optimist's: a client that may change an index may see it, and so no client learns of, or changes, an index that it
// may not see.
func (c *Catalog) List(ctx context.Context, asker Asker, expression string) (es.Listing, error) {
	ctx, cancel := detached(ctx, askingBudget)
	defer cancel()
	return c.Engine.List(ctx, asker.Caller, expression)
}

// Changed names, in order, the indices of before that are gone or are others, and all names besides that stand for something
// else.
func Changed(before, after es.Listing) []string {
	changed := make(map[string]bool)
	for index, was := range before {
		is := after[index]
		if is.ID != was.ID {
			changed[index] = true
		}
		for name, set := range was.Names {
			if now, there := is.Names[name]; !there || now != set || is.ID != was.ID {
				changed[name] = true
			}
		}
	}
	for index, is := range after {
		for name := range is.Names {
			if _, there := before[index].Names[name]; !there {
				changed[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}
