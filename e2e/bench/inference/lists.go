package inference

import (
	"fmt"
	"slices"
)

// inPlace are documents whose lists keep their entries, which clients change, and documents of measured values. Each writer has an entry of
// its own, as far as there are enough.
func inPlace() []*shape {
	return []*shape{approval(), jobs(), poll(), rights(), members(), highscores(), ticketState(), health(), queueDepth()}
}

// own is the entry of a list that is the worker's.
func (c *change) own(d map[string]any, name string) map[string]any {
	all := list(d[name])
	return object(all[c.worker%len(all)])
}

func (c *change) name() string { return fmt.Sprintf("u%d", c.worker) }

// approval: steps that are approved or rejected, and taken back.
func approval() *shape {
	return &shape{name: "approval", units: map[string]float64{"at": 0},
		seed: func(*change) map[string]any {
			var steps []any
			for i := range 16 {
				steps = append(steps, map[string]any{"role": fmt.Sprintf("role %d", i), "status": "pending", "by": nil, "at": nil})
			}
			return map[string]any{"order": "PO-4711", "amount": num(12_000), "steps": steps}
		},
		edit: func(c *change, d map[string]any) {
			s := c.own(d, "steps")
			if s["status"] == "pending" {
				s["status"], s["by"], s["at"] = []string{"approved", "rejected"}[c.IntN(2)], c.name(), c.time()
			} else {
				s["status"], s["by"], s["at"] = "pending", nil, nil
			}
		},
	}
}

// jobs: the states of a build's jobs, known by two members that nobody knows as names, and how many are in each state.
func jobs() *shape {
	next := map[any]string{"queued": "running", "passed": "queued", "failed": "queued"}
	systems, versions := []any{"linux", "mac", "windows", "bsd"}, []any{"1.24", "1.25", "1.26", "tip"}
	return &shape{name: "jobs", rules: sum("/summary/*"), units: map[string]float64{"queued": 1, "running": 1, "passed": 1, "failed": 1},
		seed: func(*change) map[string]any {
			return map[string]any{
				"build":   num(4711),
				"jobs":    known([3]string{"os", "go", "status"}, systems, versions, "queued"),
				"summary": map[string]any{"queued": num(16), "running": num(0), "passed": num(0), "failed": num(0)},
			}
		},
		edit: func(c *change, d map[string]any) {
			job, summary := c.own(d, "jobs"), object(d["summary"])
			was, is := fmt.Sprint(job["status"]), next[job["status"]]
			if is == "" {
				is = []string{"passed", "failed"}[c.IntN(2)]
			}
			job["status"] = is
			summary[was], summary[is] = num(integer(summary[was])-1), num(integer(summary[is])+1)
		},
	}
}

// poll: each voter has one vote, and moves it.
func poll() *shape {
	return &shape{name: "poll",
		seed: func(*change) map[string]any {
			var options []any
			for _, day := range []string{"Monday", "Tuesday", "Friday"} {
				options = append(options, map[string]any{"text": day, "voters": []any{}})
			}
			return map[string]any{"question": "when", "options": options}
		},
		edit: func(c *change, d map[string]any) {
			options := list(d["options"])
			to := c.IntN(len(options))
			for i := range options {
				o := object(options[i])
				voters := list(o["voters"])
				if k := slices.Index(voters, any(c.name())); k >= 0 {
					o["voters"] = slices.Delete(slices.Clone(voters), k, k+1)
					if i == to {
						to = (to + 1) % len(options)
					}
				}
			}
			o := object(options[to])
			o["voters"] = append(slices.Clone(list(o["voters"])), c.name())
		},
	}
}

// rights: who may do what, by a member that nobody knows as a name.
func rights() *shape {
	return &shape{name: "rights",
		seed: func(*change) map[string]any {
			return map[string]any{"object": "doc-1", "public": false,
				"acl": []any{map[string]any{"principal": "admin", "rights": []any{"read", "write", "share"}}}}
		},
		edit: func(c *change, d map[string]any) {
			acl := slices.Clone(list(d["acl"]))
			i := slices.IndexFunc(acl, func(e any) bool { return object(e)["principal"] == c.name() })
			right := any([]string{"write", "share"}[c.IntN(2)])
			switch {
			case i < 0:
				acl = append(acl, map[string]any{"principal": c.name(), "rights": []any{"read"}})
			case c.IntN(3) == 0:
				acl = slices.Delete(acl, i, i+1)
			default:
				e := object(acl[i])
				has := slices.Clone(list(e["rights"]))
				if k := slices.Index(has, right); k >= 0 {
					e["rights"] = slices.Delete(has, k, k+1)
				} else {
					e["rights"] = append(has, right)
				}
			}
			d["acl"] = acl
		},
	}
}

// members: messages, and how many of them each member hasn't read.
func members() *shape {
	return &shape{name: "members",
		seed: func(*change) map[string]any {
			var all []any
			for i := range 4 {
				all = append(all, map[string]any{"id": fmt.Sprintf("u%d", i), "unread": num(0)})
			}
			return map[string]any{"messages": []any{}, "members": all}
		},
		edit: func(c *change, d map[string]any) {
			from := c.own(d, "members")
			text := []string{"ok", "yes", "no"}[c.IntN(3)]
			d["messages"] = append(slices.Clone(list(d["messages"])), map[string]any{"id": c.id(), "from": from["id"], "text": text})
			for _, m := range list(d["members"]) {
				object(m)["unread"] = num(integer(object(m)["unread"]) + 1)
			}
			from["unread"] = num(0)
		},
	}
}

// highscores: the ten best results, sorted.
func highscores() *shape {
	return &shape{name: "highscores",
		seed: func(*change) map[string]any { return map[string]any{"game": "x", "top": []any{}} },
		edit: func(c *change, d map[string]any) {
			score := num(int64(c.round)*1000 + c.Int64N(5000))
			top := append(slices.Clone(list(d["top"])), map[string]any{"player": c.name(), "score": score, "at": c.time()})
			slices.SortStableFunc(top, func(a, b any) int { return int(integer(object(b)["score"]) - integer(object(a)["score"])) })
			d["top"] = top[:min(len(top), 10)]
		},
	}
}

// ticketState: a ticket that is resolved and opened again, by whom and when.
func ticketState() *shape {
	return &shape{name: "state", units: map[string]float64{"at": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"title": "x", "state": "open", "by": nil, "at": nil}
		},
		edit: func(c *change, d map[string]any) {
			if d["state"] == "open" {
				d["state"], d["by"], d["at"] = "resolved", c.name(), c.time()
			} else {
				d["state"], d["by"], d["at"] = "open", nil, nil
			}
		},
	}
}

// health: what a monitor has measured last.
func health() *shape {
	return &shape{name: "health", units: map[string]float64{"at": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"service": "api", "status": "up", "latency": num(1), "at": nil}
		},
		edit: func(c *change, d map[string]any) {
			d["status"] = []string{"up", "up", "up", "degraded", "down"}[c.IntN(5)]
			d["latency"], d["at"] = num(20+c.Int64N(70)), c.time()
		},
	}
}

// queueDepth: two measured numbers, and nothing else.
func queueDepth() *shape {
	return &shape{name: "depth",
		seed: func(*change) map[string]any { return map[string]any{"waiting": num(0), "consumers": num(1)} },
		edit: func(c *change, d map[string]any) {
			d["waiting"], d["consumers"] = num(c.Int64N(50)), num(1+c.Int64N(4))
		},
	}
}
