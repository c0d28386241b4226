package rewrite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type names struct {
	Names []string `json:"names"`
}

// TestListsThatAreKeptInOrder has several clients at once put names into a list and take out their own, and put the list into an order, over
// many rounds. The list then has each name once that was put in and not taken out.
func TestListsThatAreKeptInOrder(t *testing.T) {
	m := mustMerger(t, Sent)
	orders := []func([]string){slices.Sort[[]string], slices.Reverse[[]string], func([]string) {}}
	rapid.Check(t, func(t *rapid.T) {
		want, current := map[string]bool{"x": true, "y": true, "z": true}, names{[]string{"x", "y", "z"}}
		for round := range rapid.IntRange(1, 12).Draw(t, "rounds") {
			base, stored := encode(t, current), encode(t, current)
			for client := range rapid.IntRange(1, 4).Draw(t, "clients") {
				sent := names{slices.Clone(current.Names)}
				for n := range rapid.IntRange(0, 2).Draw(t, "put in") {
					name := fmt.Sprintf("%c%d-%d", 'a'+client, round, n)
					sent.Names = slices.Insert(sent.Names, rapid.IntRange(0, len(sent.Names)).Draw(t, "at"), name)
					want[name] = true
				}
				if own := slices.IndexFunc(sent.Names, func(name string) bool { return name[0] == byte('a'+client) }); own >= 0 && rapid.Bool().Draw(t, "take out") {
					delete(want, sent.Names[own])
					sent.Names = slices.Delete(sent.Names, own, own+1)
				}
				rapid.SampledFrom(orders).Draw(t, "order")(sent.Names)
				res, err := m.Merge(base, encode(t, sent), stored)
				if err != nil || len(res.Overwritten) > 0 {
					t.Fatalf("base %s\nsent %s\ncurrent %s\ngot %s, overwritten %q, %v", base, encode(t, sent), stored, res.Doc, res.Overwritten, err)
				}
				stored = res.Doc
			}
			current = names{}
			if err := json.Unmarshal(stored, &current); err != nil {
				t.Fatal(err)
			}
			got := slices.Sorted(slices.Values(current.Names))
			if all := slices.Sorted(maps.Keys(want)); !slices.Equal(got, all) {
				t.Fatalf("got %q\nwant %q", strings.Join(got, " "), strings.Join(all, " "))
			}
		}
	})
}
