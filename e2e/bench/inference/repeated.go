package inference

import (
	"fmt"
	"slices"
)

// repeated are documents with lists whose entries have names that occur again and again: what happened to a parcel, who did what, which
// record of a host.
func repeated() []*shape { return []*shape{parcel(), audit(), bill(), zone()} }

// parcel: events, and the last one's code as the status.
func parcel() *shape {
	return &shape{name: "parcel", units: map[string]float64{"at": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"number": "JJD-4711", "status": "created", "events": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			code := []string{"scan", "depart", "arrive", "out"}[c.IntN(4)]
			event := map[string]any{"at": c.time(), "code": code, "place": []string{"Berlin", "Hamburg", "Munich"}[c.IntN(3)]}
			d["events"], d["status"] = append(list(d["events"]), event), code
		},
	}
}

// audit: who has done what, the newest first, no more than forty.
func audit() *shape {
	return &shape{name: "audit", rules: sum("/version"), units: map[string]float64{"at": 0, "version": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"title": "Contract", "version": num(0), "log": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			did := []string{"viewed", "edited", "signed"}[c.IntN(3)]
			entry := map[string]any{"name": fmt.Sprintf("user%d", c.worker%5), "did": did, "at": c.time()}
			log := slices.Insert(list(d["log"]), 0, any(entry))
			d["log"], d["version"] = log[:min(len(log), 40)], num(integer(d["version"])+1)
		},
	}
}

// bill: lines with the code of an article. A line is put in, gets another quantity, or is taken out.
func bill() *shape {
	return &shape{name: "bill", units: map[string]float64{"qty": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"customer": "ACME", "lines": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			lines := list(d["lines"])
			switch n := c.IntN(6); {
			case n < 4 || len(lines) == 0:
				d["lines"] = append(lines, map[string]any{"code": fmt.Sprintf("A-%d", c.IntN(12)), "qty": num(1 + c.Int64N(9)), "note": ""})
			case n < 5:
				object(lines[c.IntN(len(lines))])["qty"] = num(1 + c.Int64N(9))
			default:
				i := c.IntN(len(lines))
				d["lines"] = slices.Delete(lines, i, i+1)
			}
		},
	}
}

// zone: records of hosts, of which each may have several.
func zone() *shape {
	hosts := []string{"www", "mail", "api", "@"}
	address := func(c *change) string { return fmt.Sprintf("10.0.%d.%d", c.IntN(4), c.IntN(250)) }
	return &shape{name: "zone", rules: sum("/serial"), units: map[string]float64{"serial": 1},
		seed: func(c *change) map[string]any {
			var records []any
			for i := range 8 {
				records = append(records, map[string]any{"name": hosts[i%4], "type": "A", "value": address(c), "ttl": num(300)})
			}
			return map[string]any{"zone": "example.test", "serial": num(1), "records": records}
		},
		edit: func(c *change, d map[string]any) {
			records := list(d["records"])
			d["serial"] = num(integer(d["serial"]) + 1)
			switch n := c.IntN(4); {
			case n == 0 || len(records) < 3:
				r := map[string]any{"name": hosts[c.IntN(4)], "type": []string{"A", "TXT", "MX"}[c.IntN(3)], "value": address(c), "ttl": num(300)}
				d["records"] = append(records, r)
			case n == 1 && len(records) > 12:
				i := c.IntN(len(records))
				d["records"] = slices.Delete(records, i, i+1)
			default:
				object(records[c.IntN(len(records))])["value"] = address(c)
			}
		},
	}
}
