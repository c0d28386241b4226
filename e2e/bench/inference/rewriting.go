package inference

import (
	"fmt"
	"slices"
	"strings"

	"optimist/rewrite/merge"
)

// rewriting are documents in which each writer writes the same place anew, and entries that clients number themselves. A count tells the
// revision.
func rewriting() []*shape { return []*shape{paragraphs(), translations(), panels(), quantities()} }

// paragraphs: texts in a list. Each writer puts some in, and writes its first one anew.
func paragraphs() *shape {
	return &shape{name: "paragraphs", rules: sum("/version"), units: map[string]float64{"version": 1},
		seed: func(c *change) map[string]any {
			var lines []any
			for range 30 {
				lines = append(lines, c.prose(10))
			}
			return map[string]any{"lines": lines, "version": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			lines := slices.Clone(list(d["lines"]))
			mine := slices.IndexFunc(lines, func(l any) bool { return strings.HasPrefix(l.(string), c.name()+" ") })
			text := c.name() + " " + c.prose(10)
			if mine >= 0 && c.IntN(3) > 0 {
				lines[mine] = text
			} else {
				lines = slices.Insert(lines, c.IntN(len(lines)+1), any(text))
			}
			d["lines"], d["version"] = lines, num(integer(d["version"])+1)
		},
	}
}

// translations: each writer writes the text of its language anew.
func translations() *shape {
	return &shape{name: "translations", rules: sum("/version"), units: map[string]float64{"version": 1},
		seed: func(c *change) map[string]any {
			texts := map[string]any{}
			for i := range 16 {
				texts[fmt.Sprintf("u%d", i)] = map[string]any{"title": "x", "body": c.prose(30)}
			}
			return map[string]any{"slug": "x", "texts": texts, "version": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			object(object(d["texts"])[fmt.Sprintf("u%d", c.worker%16)])["body"] = c.prose(30)
			d["version"] = num(integer(d["version"]) + 1)
		},
	}
}

// panels: a client that puts an entry in gives it the number after the highest one.
func panels() *shape {
	return &shape{name: "panels", rules: sum("/version"), units: map[string]float64{"version": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"title": "x", "panels": []any{}, "version": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			panels := slices.Clone(list(d["panels"]))
			d["version"] = num(integer(d["version"]) + 1)
			if p := c.entryOf(d, "panels"); p != nil && c.IntN(2) == 0 {
				p["queries"] = append(slices.Clone(list(p["queries"])), c.prose(3))
				return
			}
			highest := int64(0)
			for _, p := range panels {
				highest = max(highest, integer(object(p)["id"]))
			}
			d["panels"] = append(panels, map[string]any{"id": num(highest + 1), "title": c.id(), "queries": []any{c.prose(3)}})
		},
	}
}

// quantities: how much of which product, by a member that only the rule names, and of all together.
func quantities() *shape {
	return &shape{name: "quantities", units: map[string]float64{"qty": 1, "items": 1},
		rules: append(sum("/lines/*/qty", "/items"), merge.PathRule{Path: "/lines", Strategy: merge.ByKey, Key: "productId"}),
		seed:  func(*change) map[string]any { return map[string]any{"lines": []any{}, "items": num(0)} },
		edit: func(c *change, d map[string]any) {
			d["items"] = num(integer(d["items"]) + 1)
			product := any(fmt.Sprintf("p%d", c.IntN(6)))
			lines := slices.Clone(list(d["lines"]))
			if i := slices.IndexFunc(lines, func(l any) bool { return object(l)["productId"] == product }); i >= 0 {
				object(lines[i])["qty"] = num(integer(object(lines[i])["qty"]) + 1)
				return
			}
			d["lines"] = append(lines, map[string]any{"productId": product, "qty": num(1)})
		},
	}
}
