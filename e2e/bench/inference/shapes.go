package inference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"optimist/rewrite/merge"
)

// shapes are documents as people have them.
func shapes() []*shape {
	plain := []*shape{
		counter(), entries(), fields(), cart(), order(), ticket(), profile(), stock(), queue(), tags(), settings(), wiki(), wide(),
	}
	return slices.Concat(plain, numbers(), vague())
}

func num(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func integer(v any) int64 {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return i
}

func list(v any) []any { l, _ := v.([]any); return l }

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }

func sum(paths ...string) (rules []merge.PathRule) {
	for _, p := range paths {
		rules = append(rules, merge.PathRule{Path: p, Strategy: merge.Sum})
	}
	return rules
}

// counter: a number goes up by one.
func counter() *shape {
	return &shape{
		name: "counter", rules: sum("/stock"), units: map[string]float64{"stock": 1},
		seed: func(*change) map[string]any { return map[string]any{"stock": num(0)} },
		edit: func(_ *change, d map[string]any) { d["stock"] = num(integer(d["stock"]) + 1) },
	}
}

// entries: an entry is appended to a list.
func entries() *shape {
	return &shape{
		name: "list",
		seed: func(*change) map[string]any { return map[string]any{"entries": []any{}} },
		edit: func(c *change, d map[string]any) { d["entries"] = append(list(d["entries"]), c.id()) },
	}
}

// fields: each worker counts in a field of its own.
func fields() *shape {
	return &shape{
		name: "fields",
		seed: func(*change) map[string]any { return map[string]any{} },
		edit: func(c *change, d map[string]any) {
			name := fmt.Sprintf("w%d", c.worker)
			d[name] = num(integer(d[name]) + 1)
		},
	}
}

// cart: an entry is appended, the number of entries goes up by one, and the time is set.
func cart() *shape {
	return &shape{
		name: "cart", rules: sum("/count"), units: map[string]float64{"count": 1, "updated_at": 0},
		seed: func(c *change) map[string]any {
			return map[string]any{"user": "ada", "currency": "EUR", "items": []any{}, "count": num(0), "updated_at": c.time()}
		},
		edit: func(c *change, d map[string]any) {
			d["items"] = append(list(d["items"]), map[string]any{"sku": "sku-" + c.id(), "qty": num(1 + c.Int64N(3))})
			d["count"] = num(integer(d["count"]) + 1)
			d["updated_at"] = c.time()
		},
	}
}

// order: a line is appended, the total goes up, each worker counts in a field of its own, and writes who was last.
func order() *shape {
	return &shape{
		name: "order", rules: sum("/total"), units: map[string]float64{"total": 10, "last": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"number": "2024-0815", "state": "open", "lines": []any{}, "total": num(0), "by": map[string]any{}, "last": ""}
		},
		edit: func(c *change, d map[string]any) {
			amount := 5 + c.Int64N(10)
			name := fmt.Sprintf("clerk%d", c.worker)
			d["lines"] = append(list(d["lines"]), map[string]any{"article": fmt.Sprintf("A-%d", c.IntN(500)), "amount": num(amount)})
			d["total"] = num(integer(d["total"]) + amount)
			object(d["by"])[name] = num(integer(object(d["by"])[name]) + 1)
			d["last"] = name
		},
	}
}

// ticket: most add a comment, some change the status or who is assigned, few correct a comment of theirs.
func ticket() *shape {
	states := []string{"open", "pending", "waiting for customer", "solved"}
	return &shape{
		name: "ticket", units: map[string]float64{"updated_at": 0},
		seed: func(c *change) map[string]any {
			return map[string]any{
				"title": "Printer on fire", "status": "open", "priority": num(2), "assignee": nil, "comments": []any{}, "updated_at": c.time(),
			}
		},
		edit: func(c *change, d map[string]any) {
			author := fmt.Sprintf("agent%d", c.worker)
			d["updated_at"] = c.time()
			switch n := c.IntN(10); {
			case n < 7:
				d["comments"] = append(list(d["comments"]), map[string]any{"author": author, "text": c.prose(4 + c.IntN(12)), "at": c.time()})
			case n < 8:
				d["status"] = states[c.IntN(len(states))]
			case n < 9:
				d["assignee"] = fmt.Sprintf("agent%d", c.IntN(8))
			default:
				for _, m := range slices.Backward(list(d["comments"])) {
					if o := object(m); o["author"] == author {
						o["text"] = o["text"].(string) + " " + c.prose(3)
						break
					}
				}
			}
		},
	}
}

// profile: one of many fields is set to something else.
func profile() *shape {
	texts := []string{"name", "email", "phone", "city", "street", "bio", "company", "job"}
	flags := []string{"newsletter", "dark_mode", "public"}
	return &shape{
		name: "profile",
		seed: func(c *change) map[string]any {
			d := map[string]any{"logins": num(12), "languages": []any{"de", "en"}}
			for _, k := range texts {
				d[k] = c.prose(2)
			}
			for _, k := range flags {
				d[k] = false
			}
			return d
		},
		edit: func(c *change, d map[string]any) {
			if c.IntN(5) == 0 {
				k := flags[c.IntN(len(flags))]
				d[k] = d[k] != true
				return
			}
			d[texts[c.IntN(len(texts))]] = c.prose(1 + c.IntN(4))
		},
	}
}

// stock: an article is sold or comes in, somewhere deep in the document.
func stock() *shape {
	return &shape{
		name: "stock", rules: sum("/warehouses/*/bins/*/qty", "/warehouses/*/bins/*/sold"),
		units: map[string]float64{"qty": 2, "sold": 2},
		seed: func(*change) map[string]any {
			houses := map[string]any{}
			for _, h := range []string{"berlin", "lyon", "porto"} {
				bins := map[string]any{}
				for b := range 8 {
					bins[fmt.Sprintf("bin-%d", b)] = map[string]any{"qty": num(1000), "sold": num(0), "unit": "pcs"}
				}
				houses[h] = map[string]any{"open": true, "bins": bins}
			}
			return map[string]any{"article": "bolt M8", "warehouses": houses}
		},
		edit: func(c *change, d map[string]any) {
			house := []string{"berlin", "lyon", "porto"}[c.IntN(3)]
			bin := object(object(object(object(d["warehouses"])[house])["bins"])[fmt.Sprintf("bin-%d", c.IntN(8))])
			if c.IntN(10) == 0 {
				bin["qty"] = num(integer(bin["qty"]) + 10)
				return
			}
			n := 1 + c.Int64N(3)
			bin["qty"], bin["sold"] = num(integer(bin["qty"])-n), num(integer(bin["sold"])+n)
		},
	}
}

// queue: jobs are pushed at the end and popped from the beginning.
func queue() *shape {
	return &shape{
		name: "queue", rules: sum("/pushed", "/popped"), units: map[string]float64{"pushed": 1, "popped": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"name": "mails", "jobs": []any{}, "pushed": num(0), "popped": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			jobs := list(d["jobs"])
			if len(jobs) > 0 && c.IntN(9) < 4 {
				d["jobs"], d["popped"] = jobs[1:], num(integer(d["popped"])+1)
				return
			}
			d["jobs"] = append(jobs, map[string]any{"id": c.id(), "to": fmt.Sprintf("user%d@example.org", c.IntN(1000))})
			d["pushed"] = num(integer(d["pushed"]) + 1)
		},
	}
}

// tags: a set of words, of which some are added and some are taken out.
func tags() *shape {
	return &shape{
		name: "tags",
		seed: func(*change) map[string]any {
			return map[string]any{"title": "holiday", "path": "/2024/07/0815.jpg", "tags": []any{"sea", "sun"}}
		},
		edit: func(c *change, d map[string]any) {
			set := list(d["tags"])
			if len(set) > 0 && c.IntN(5) < 2 {
				at := c.IntN(len(set))
				d["tags"] = slices.Delete(slices.Clone(set), at, at+1)
				return
			}
			tag := any(words[c.IntN(len(words))] + "-" + words[c.IntN(len(words))])
			if !slices.Contains(set, tag) {
				d["tags"] = append(set, tag)
			}
		},
	}
}

// settings: keys are set, added and taken out.
func settings() *shape {
	return &shape{
		name: "settings",
		seed: func(*change) map[string]any {
			return map[string]any{"app": "editor", "settings": map[string]any{"tab.size": num(4), "font": "mono", "wrap": false}}
		},
		edit: func(c *change, d map[string]any) {
			m := object(d["settings"])
			key := words[c.IntN(12)] + "." + words[c.IntN(12)]
			_, there := m[key]
			switch c.IntN(4) {
			case 0:
				m[key] = c.IntN(2) == 0
			case 1:
				m[key] = num(c.Int64N(20))
			case 2:
				m[key] = words[c.IntN(len(words))]
			default:
				if delete(m, key); !there {
					m[key] = words[c.IntN(len(words))]
				}
			}
		},
	}
}

// wiki: one long text, in which a line is added or changed.
func wiki() *shape {
	return &shape{
		name: "wiki", rules: sum("/edits"), units: map[string]float64{"edits": 1, "editor": 0},
		seed: func(c *change) map[string]any {
			lines := make([]string, 12)
			for i := range lines {
				lines[i] = c.prose(12)
			}
			return map[string]any{"title": "How to", "text": strings.Join(lines, "\n"), "edits": num(0), "editor": ""}
		},
		edit: func(c *change, d map[string]any) {
			lines := strings.Split(d["text"].(string), "\n")
			at := c.IntN(len(lines))
			if len(lines) < 30 && c.IntN(2) == 0 {
				lines = slices.Insert(lines, at, c.prose(12))
			} else {
				lines[at] = c.prose(12)
			}
			d["text"], d["editor"] = strings.Join(lines, "\n"), fmt.Sprintf("user%d", c.worker)
			d["edits"] = num(integer(d["edits"]) + 1)
		},
	}
}

// wide: a hundred fields, of which two change.
func wide() *shape {
	return &shape{
		name: "wide",
		seed: func(c *change) map[string]any {
			d := map[string]any{}
			for i := range 50 {
				d[fmt.Sprintf("n%02d", i)], d[fmt.Sprintf("t%02d", i)] = num(c.Int64N(100)), c.prose(2)
			}
			return d
		},
		edit: func(c *change, d map[string]any) {
			d[fmt.Sprintf("n%02d", c.IntN(50))] = num(c.Int64N(100))
			d[fmt.Sprintf("t%02d", c.IntN(50))] = c.prose(2)
		},
	}
}

// prose is some words.
func (c *change) prose(n int) string {
	some := make([]string, n)
	for i := range some {
		some[i] = words[c.IntN(len(words))]
	}
	return strings.Join(some, " ")
}

var words = strings.Fields("amber basil cedar delta ember fjord grove hazel ivory jolly karma lemon maple nylon ocean pearl quartz river " +
	"sable tulip umber velvet willow xenon yonder zephyr anchor bridge candle dragon engine falcon garden harbor island jungle kettle lantern")
