package inference

import "fmt"

// moving are documents in which something gets another key, or goes from one object to another. Each writer has something of its own.
func moving() []*shape { return []*shape{renamed(), owner(), stages()} }

// renamed: each writer's version has its number in its key, which changes.
func renamed() *shape {
	return &shape{name: "renamed",
		seed: func(*change) map[string]any {
			d := map[string]any{"title": "x"}
			for i := range 16 {
				d[fmt.Sprintf("part%d-v0", i)] = map[string]any{"checked": true}
			}
			return d
		},
		edit: func(c *change, d map[string]any) {
			part := fmt.Sprintf("part%d-v", c.worker%16)
			for k := range d {
				if len(k) > len(part) && k[:len(part)] == part {
					delete(d, k)
				}
			}
			d[part+fmt.Sprint(c.round+1)] = map[string]any{"checked": true}
		},
	}
}

// owner: what each writer owns passes to another user, who is the key. Others look on.
func owner() *shape {
	return &shape{name: "owner",
		seed: func(*change) map[string]any {
			users := map[string]any{"zoe": map[string]any{"role": "viewer"}}
			for i := range 16 {
				users[fmt.Sprintf("user%d-0", i)] = map[string]any{"role": "owner"}
			}
			return map[string]any{"object": "doc-1", "by_user": users}
		},
		edit: func(c *change, d map[string]any) {
			users := object(d["by_user"])
			delete(users, fmt.Sprintf("user%d-%d", c.worker, c.round))
			users[fmt.Sprintf("user%d-%d", c.worker, c.round+1)] = map[string]any{"role": "owner"}
		},
	}
}

// stages: jobs in objects, which are queued, run, and are done.
func stages() *shape {
	stages := []string{"queued", "running", "done"}
	return &shape{name: "stages",
		seed: func(*change) map[string]any {
			return map[string]any{"queued": map[string]any{}, "running": map[string]any{}, "done": map[string]any{}}
		},
		edit: func(c *change, d map[string]any) {
			job, at := fmt.Sprintf("job-%d-%d", c.worker, c.round/3), c.round%3
			if at == 0 {
				object(d["queued"])[job] = map[string]any{"cmd": "make", "host": nil}
				return
			}
			from := object(d[stages[at-1]])
			if was, there := from[job]; there {
				delete(from, job)
				object(d[stages[at]])[job] = was
			}
		},
	}
}
