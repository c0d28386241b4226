package config

import (
	"fmt"
	"slices"
	"testing"
)

// TestLookingForOverlapsGrowsWithThePaths counts what is looked at: check of 3,000 paths took 27 s when each was compared with all others.
func TestLookingForOverlapsGrowsWithThePaths(t *testing.T) {
	for name, path := range map[string]func(i int) string{
		"names":            func(i int) string { return fmt.Sprintf("/field%d", i) },
		"names, deep":      func(i int) string { return fmt.Sprintf("/a/b/c%d/d/e/f", i) },
		"elements":         func(i int) string { return fmt.Sprintf("/lines%d/*/price", i) },
		"one list":         func(i int) string { return fmt.Sprintf("/lines/*/field%d", i) },
		"one list, halved": func(i int) string { return []string{"/lines/*/field%d", "/tags/field%d"}[i%2] + fmt.Sprint(i) },
	} {
		looked := func(n int) int {
			m := Merge{}
			for i := range n {
				m.Paths = append(m.Paths, MergePath{Path: path(i), Strategy: StrategySum})
			}
			m.Paths = append(m.Paths, MergePath{Path: "/*/x/*", Strategy: StrategyMax}, MergePath{Path: "/*", Strategy: StrategyMax})
			tree := newPathTree(m.Paths)
			(&validator{cfg: Default()}).overlaps(&m, tree, "")
			return tree.visited
		}
		few, many := looked(300), looked(3000)
		if many > 11*few || many < 3000 {
			t.Errorf("%s: %d looks at 300 paths, %d at 3000", name, few, many)
		}
	}
}

func TestPathsThatMeetAreFound(t *testing.T) {
	var paths MergePaths
	for _, p := range []string{"/a/*", "/*/b", "/*/*", "/a/b", "/*/c", "/*/b/x", "/a", "/d/*/e", "/*/f/*", "/d/f/g", "/d"} {
		paths = append(paths, MergePath{Path: p})
	}
	tree := newPathTree(paths)
	for i, want := range [][]int{nil, {0}, nil, nil, {0}, nil, nil, nil, {7}, nil, nil} {
		if got := tree.crossing(i); !slices.Equal(got, want) {
			t.Errorf("%s crosses %v, want %v", paths[i].Path, got, want)
		}
	}
	for path, want := range map[string]string{"/a/b": "/a/b", "/a/c": "/a/*", "/q/b": "/*/b", "/q/r": "/*/*", "/q": "", "/d/f/g": "/d/f/g", "/d/f/h": "/*/f/*",
		"/d/q/e": "/d/*/e", "/*/b": "/*/b", "/*/q": "/*/*", "/a/b/x": "/*/b/x"} {
		if got := tree.deciding(pointerTokens(path)); (got == nil) != (want == "") || got != nil && got.Path != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
}

func TestTheWayOthersWritePathsIsUnderstood(t *testing.T) {
	for path, want := range map[string]string{"stock": "/stock", "address.city": "/address/city", "$.lines[*].price": "/lines/*/price",
		".lines[].price": "/lines/*/price", "lines[0].price": "/lines/0/price", `a["b"]`: "/a/b", "a/b": "/a/b", "a~b": "/a~0b"} {
		err := checkPointer(path)
		if want = "a path is a JSON Pointer and begins with a slash: write " + want; err == nil || err.Error() != want {
			t.Errorf("%s: %v", path, err)
		}
		if checkPointer(asPointer(path)) != nil {
			t.Errorf("%s is not a pointer", asPointer(path))
		}
	}
}
