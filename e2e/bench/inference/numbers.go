package inference

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"optimist/rewrite/merge"
)

// numbers are documents in which a number is set anew with each change, or moved by nearly the same each time. How far it would have moved
// from a candidate says nothing of whether the client has read that.
func numbers() []*shape { return []*shape{dated(), metered(), payments()} }

// unix is the present moment as a number, as applications write it: with unit time.Millisecond, the milliseconds since 1970.
func (c *change) unix(unit time.Duration, digits int) json.Number {
	at := time.UnixMilli(1_700_000_000_000).Add(c.now).UnixNano()
	return json.Number(strconv.FormatFloat(float64(at)/float64(unit), 'f', digits, 64))
}

// dated: comments, who works at it, and when it was changed, in milliseconds and in seconds with a fraction. It was last changed an hour
// ago.
func dated() *shape {
	return &shape{
		name: "dated", units: map[string]float64{"updated_at": 0, "seen": 0},
		seed: func(c *change) map[string]any {
			past := change{world: &world{now: c.now - time.Hour}}
			return map[string]any{
				"title": "printer", "comments": []any{}, "assignee": nil, "status": "open",
				"updated_at": past.unix(time.Millisecond, 0), "seen": past.unix(time.Second, 6),
			}
		},
		edit: func(c *change, d map[string]any) {
			if c.IntN(3) > 0 {
				d["comments"] = append(list(d["comments"]), map[string]any{"by": fmt.Sprintf("u%d", c.worker), "text": "see " + c.id()})
			} else {
				d["assignee"], d["status"] = c.id(), "taken by "+c.id()
			}
			d["updated_at"], d["seen"] = c.unix(time.Millisecond, 0), c.unix(time.Second, 6)
		},
	}
}

// metered: notes, and what was measured last.
func metered() *shape {
	return &shape{
		name: "metered", units: map[string]float64{"temperature": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"device": "t-17", "notes": []any{}, "temperature": json.Number("20.5"), "by": ""}
		},
		edit: func(c *change, d map[string]any) {
			d["notes"] = append(list(d["notes"]), "note "+c.id())
			d["temperature"] = json.Number(strconv.FormatFloat(25+float64(c.Int64N(10))/1000, 'f', 3, 64))
			d["by"] = c.id()
		},
	}
}

// payments: nearly equal amounts, and their sum.
func payments() *shape {
	return &shape{
		name: "payments", rules: []merge.PathRule{{Path: "/balance", Strategy: merge.Sum}}, units: map[string]float64{"balance": 1500},
		seed: func(*change) map[string]any {
			return map[string]any{"account": "DE00", "balance": num(0), "payments": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			amount := 1498 + c.Int64N(5)
			d["balance"] = num(integer(d["balance"]) + amount)
			d["payments"] = append(list(d["payments"]), map[string]any{"id": c.id(), "amount": num(amount)})
		},
	}
}
