package inference

import (
	"fmt"
	"slices"
)

// people are documents as people edit them by forms: fields are short, entries are known by two members together, rows are lists, and
// counts go down now and then.
func people() []*shape {
	return []*shape{
		cinema(), rooms(), sizes(), shortFields(), checkboxes(), likes(), sheet(), polygon(), notesEpoch(), timesheet(), ports(), kanban(),
		votesBack(), stockBack(), claim(),
	}
}

// known are entries that are known by two members together: one for each pair of values. Clients change a third member of them.
func known(names [3]string, as, bs []any, value any) (entries []any) {
	for _, a := range as {
		for _, b := range bs {
			entries = append(entries, map[string]any{names[0]: a, names[1]: b, names[2]: value})
		}
	}
	return entries
}

// entryOf returns an entry of a list, by chance; nil: the list is empty.
func (c *change) entryOf(d map[string]any, name string) map[string]any {
	some := list(d[name])
	if len(some) == 0 {
		return nil
	}
	return object(some[c.IntN(len(some))])
}

// flip turns a flag, unless there is nothing to turn it in.
func flip(entry map[string]any, flag string) {
	if entry != nil {
		entry[flag] = entry[flag] != true
	}
}

func cinema() *shape {
	return &shape{name: "cinema",
		seed: func(*change) map[string]any {
			var rows, seats []any
			for r := range int64(4) {
				rows = append(rows, num(r+1))
			}
			for s := range int64(8) {
				seats = append(seats, num(s+1))
			}
			return map[string]any{"film": "x", "seats": known([3]string{"row", "seat", "free"}, rows, seats, true)}
		},
		edit: func(c *change, d map[string]any) { flip(c.entryOf(d, "seats"), "free") },
	}
}

func rooms() *shape {
	return &shape{name: "rooms",
		seed: func(*change) map[string]any {
			rooms, hours := []any{"Ada", "Bell", "Curie"}, []any(nil)
			for h := range 9 {
				hours = append(hours, fmt.Sprintf("%02d:00", 9+h))
			}
			return map[string]any{"day": "2026-01-07", "slots": known([3]string{"room", "at", "by"}, rooms, hours, nil)}
		},
		edit: func(c *change, d map[string]any) {
			me, s := fmt.Sprintf("u%d", c.worker), c.entryOf(d, "slots")
			switch {
			case s == nil:
			case s["by"] == me:
				s["by"] = nil
			default:
				s["by"] = me
			}
		}}
}

func sizes() *shape {
	return &shape{name: "sizes",
		seed: func(*change) map[string]any {
			products, sizes := []any{"shirt", "coat", "sock"}, []any{"S", "M", "L", "XL"}
			return map[string]any{"shop": "x", "lines": known([3]string{"product", "size", "qty"}, products, sizes, num(5))}
		},
		edit: func(c *change, d map[string]any) {
			if s := c.entryOf(d, "lines"); s != nil {
				s["qty"] = num(c.Int64N(12))
			}
		}}
}

func ports() *shape {
	return &shape{name: "ports",
		seed: func(*change) map[string]any {
			hosts, ports := []any{"web1", "web2", "db1"}, []any{num(22), num(80), num(443), num(9200)}
			return map[string]any{"site": "x", "checks": known([3]string{"host", "port", "up"}, hosts, ports, true)}
		},
		edit: func(c *change, d map[string]any) { flip(c.entryOf(d, "checks"), "up") },
	}
}

func shortFields() *shape {
	return &shape{name: "form",
		seed: func(*change) map[string]any {
			return map[string]any{"title": "Printer on fire", "status": "open", "prio": num(2), "team": "web",
				"sprint": num(14), "kind": "bug", "points": num(3), "by": "ada"}
		},
		edit: func(c *change, d map[string]any) {
			switch c.IntN(7) {
			case 0:
				d["status"] = []string{"open", "doing", "done"}[c.IntN(3)]
			case 1:
				d["prio"] = num(1 + c.Int64N(5))
			case 2:
				d["team"] = []string{"web", "ops", "app", "data"}[c.IntN(4)]
			case 3:
				d["sprint"] = num(10 + c.Int64N(20))
			case 4:
				d["kind"] = []string{"bug", "task", "idea"}[c.IntN(3)]
			case 5:
				d["points"] = num(1 + c.Int64N(8))
			default:
				d["by"] = []string{"ada", "bob", "eve", "joe", "tim"}[c.IntN(5)]
			}
		}}
}

func checkboxes() *shape {
	return &shape{name: "checkboxes",
		seed: func(*change) map[string]any {
			d := map[string]any{"user": "ada"}
			for i := range 12 {
				d[fmt.Sprintf("opt%d", i)] = i%2 == 0
			}
			return d
		},
		edit: func(c *change, d map[string]any) {
			flip(d, fmt.Sprintf("opt%d", c.IntN(12)))
		}}
}

// likes: mostly one more, now and then one is taken back; and who was last.
func likes() *shape {
	return &shape{name: "likes", rules: sum("/likes"), units: map[string]float64{"likes": 1, "last": 0},
		seed: func(*change) map[string]any { return map[string]any{"post": "x", "likes": num(100), "last": ""} },
		edit: func(c *change, d map[string]any) {
			n := int64(1)
			if c.IntN(20) == 0 {
				n = -1
			}
			d["likes"], d["last"] = num(integer(d["likes"])+n), fmt.Sprintf("u%d", c.worker)
		}}
}

func votesBack() *shape {
	return &shape{name: "retracted", rules: sum("/yes", "/no"), units: map[string]float64{"yes": 1, "no": 1},
		seed: func(*change) map[string]any { return map[string]any{"poll": "x", "yes": num(100), "no": num(100)} },
		edit: func(c *change, d map[string]any) {
			k := []string{"yes", "no"}[c.IntN(2)]
			n := int64(1)
			if c.IntN(16) == 0 {
				n = -1
			}
			d[k] = num(integer(d[k]) + n)
		}}
}

// stockBack: one is sold, and now and then one comes back or many come in.
func stockBack() *shape {
	return &shape{name: "returns", rules: sum("/stock"), units: map[string]float64{"stock": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"article": "bolt", "stock": num(1000), "log": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			n := int64(-1)
			switch c.IntN(20) {
			case 0:
				n = 1
			case 1:
				n = 50
			}
			d["stock"] = num(integer(d["stock"]) + n)
			l := append(list(d["log"]), fmt.Sprintf("u%d", c.worker))
			d["log"] = l[max(0, len(l)-5):]
		}}
}

// sheet: rows of cells.
func sheet() *shape {
	return &shape{name: "sheet",
		seed: func(c *change) map[string]any {
			var rows []any
			for r := range 8 {
				row := []any{fmt.Sprintf("row %d", r)}
				for range 5 {
					row = append(row, num(c.Int64N(1000)))
				}
				rows = append(rows, row)
			}
			return map[string]any{"sheet": "x", "rows": rows}
		},
		edit: func(c *change, d map[string]any) {
			rows := list(d["rows"])
			if len(rows) == 0 {
				return
			}
			row := list(rows[c.IntN(len(rows))])
			if len(row) < 2 {
				return
			}
			row[1+c.IntN(len(row)-1)] = num(c.Int64N(1000))
		}}
}

// polygon: points that are moved, added and taken out.
func polygon() *shape {
	return &shape{name: "polygon",
		seed: func(c *change) map[string]any {
			var ps []any
			for range 10 {
				ps = append(ps, []any{num(c.Int64N(500)), num(c.Int64N(500))})
			}
			return map[string]any{"area": "x", "points": ps}
		},
		edit: func(c *change, d map[string]any) {
			ps := list(d["points"])
			if len(ps) < 4 {
				d["points"] = append(ps, []any{num(c.Int64N(500)), num(c.Int64N(500))})
				return
			}
			i := c.IntN(len(ps))
			switch c.IntN(4) {
			case 0:
				d["points"] = slices.Insert(slices.Clone(ps), i, any([]any{num(c.Int64N(500)), num(c.Int64N(500))}))
			case 1:
				d["points"] = slices.Delete(slices.Clone(ps), i, i+1)
			default:
				p := list(ps[i])
				ps[i] = []any{num(integer(p[0]) + c.Int64N(20) - 10), num(integer(p[1]) + c.Int64N(20) - 10)}
			}
		}}
}

// notesEpoch: entries have the time of their last change in milliseconds.
func notesEpoch() *shape {
	return &shape{name: "notes",
		seed: func(c *change) map[string]any {
			var ps []any
			for i := range 8 {
				ps = append(ps, map[string]any{"user": fmt.Sprintf("u%d", i), "done": false,
					"prio": num(int64(i % 3)), "at": num(1_700_000_000_000 + int64(i))})
			}
			return map[string]any{"list": "x", "notes": ps}
		},
		edit: func(c *change, d map[string]any) {
			p := c.entryOf(d, "notes")
			if p == nil {
				return
			}
			p["at"] = num(1_700_000_000_000 + int64(c.now/1_000_000) + 100)
			if c.IntN(2) == 0 {
				flip(p, "done")
			} else {
				p["prio"] = num(c.Int64N(3))
			}
		}}
}

// timesheet: hours by day and task; several entries of a day.
func timesheet() *shape {
	return &shape{name: "timesheet",
		seed: func(c *change) map[string]any { return map[string]any{"who": "x", "hours": []any{}} },
		edit: func(c *change, d map[string]any) {
			hs := list(d["hours"])
			if len(hs) > 6 && c.IntN(3) > 0 {
				object(hs[c.IntN(len(hs))])["h"] = num(1 + c.Int64N(8))
				return
			}
			if len(hs) > 30 {
				return
			}
			day := []string{"mon", "tue", "wed", "thu", "fri"}[c.IntN(5)]
			d["hours"] = append(hs, map[string]any{"day": day, "task": words[c.IntN(6)], "h": num(1 + c.Int64N(8))})
		}}
}

// kanban: columns are lists in a list.
func kanban() *shape {
	return &shape{name: "kanban",
		seed: func(c *change) map[string]any {
			var cards []any
			for i := range 10 {
				cards = append(cards, fmt.Sprintf("T-%d", 100+i))
			}
			return map[string]any{"board": "x", "columns": []any{cards, []any{}, []any{}}}
		},
		edit: func(c *change, d map[string]any) {
			cols := list(d["columns"])
			if len(cols) < 2 {
				return
			}
			from := c.IntN(len(cols))
			l := list(cols[from])
			if len(l) == 0 {
				return
			}
			to, i := c.IntN(len(cols)), c.IntN(len(l))
			card := l[i]
			cols[from] = slices.Delete(slices.Clone(l), i, i+1)
			cols[to] = append(slices.Clone(list(cols[to])), card)
		}}
}

// claim: a claim of an insurance. It is paid in several payments, and gets notes and documents. One of its flags is set, or its status.
// Each change sets a time.
func claim() *shape {
	return &shape{name: "claim", rules: sum("/paid_total"), units: map[string]float64{"paid_total": 500, "updated_at": 0},
		seed: func(c *change) map[string]any {
			checklist := map[string]any{}
			for i := range 16 {
				checklist[fmt.Sprintf("step_%d", i)] = false
			}
			return map[string]any{
				"claim_no": "C-1", "status": "open", "paid_total": num(0), "payments": []any{}, "notes": []any{}, "documents": []any{},
				"checklist": checklist, "updated_at": c.time(),
			}
		},
		edit: func(c *change, d map[string]any) {
			d["updated_at"] = c.time()
			switch c.IntN(5) {
			case 0:
				amount := 50 + c.Int64N(950)
				d["payments"] = append(list(d["payments"]), map[string]any{"ref": "PAY-" + c.id(), "amount": num(amount), "payee": c.prose(1)})
				d["paid_total"] = num(integer(d["paid_total"]) + amount)
			case 1:
				d["notes"] = append(list(d["notes"]), map[string]any{"by": c.name(), "text": c.prose(5)})
			case 2:
				object(d["checklist"])[fmt.Sprintf("step_%d", c.worker%16)] = c.IntN(2) == 0
			case 3:
				d["status"] = []string{"open", "in review", "waiting for documents", "approved", "rejected"}[c.IntN(5)]
			default:
				d["documents"] = append(list(d["documents"]), "scan-"+c.id()+".pdf")
			}
		},
	}
}
