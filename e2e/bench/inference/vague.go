package inference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"optimist/rewrite/merge"
)

// vague are documents in which little tells changes apart.
func vague() []*shape {
	list := []*shape{
		readings(), chat(), switches(), thread(), tasks(), seats(), lines(), scores(), board(), window(), invoice(), columns(), auction(),
		votes(), holders(), reservations(), leaderboard(), account(), basket(), track(), grid(), article(), unread(), statistics(),
		calendar(), deadlines(),
	}
	list = slices.Concat(list, people(), inPlace(), moving(), rewriting(), repeated())
	for _, s := range list {
		s.vague = true
	}
	return list
}

// readings: small numbers, of which many are equal, with the last one and how many there are.
func readings() *shape {
	return &shape{
		name: "readings", rules: sum("/count"), units: map[string]float64{"count": 1, "at": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"sensor": "t-17", "readings": []any{}, "latest": map[string]any{}, "count": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			v := num(c.Int64N(10))
			d["readings"] = append(list(d["readings"]), v)
			d["latest"] = map[string]any{"v": v, "at": c.time()}
			d["count"] = num(integer(d["count"]) + 1)
		},
	}
}

// chat: short messages that are often the same, who takes part, who was last, and how many there are.
func chat() *shape {
	return &shape{
		name: "chat", rules: sum("/n"), units: map[string]float64{"n": 1, "at": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"topic": "x", "users": []any{}, "messages": []any{}, "n": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			user := fmt.Sprintf("u%d", c.worker)
			text := []string{"ok", "yes", "no", "thanks", "see you"}[c.IntN(5)]
			d["messages"] = append(list(d["messages"]), map[string]any{"from": user, "text": text, "turn": num(int64(c.round))})
			d["last"] = map[string]any{"from": user, "at": c.time()}
			d["n"] = num(integer(d["n"]) + 1)
			if !slices.Contains(list(d["users"]), any(user)) {
				d["users"] = append(list(d["users"]), user)
			}
		},
	}
}

// switches: each worker turns a switch of its own on and off.
func switches() *shape {
	return &shape{
		name: "switches",
		seed: func(*change) map[string]any { return map[string]any{"app": "x", "on": map[string]any{}} },
		edit: func(c *change, d map[string]any) {
			f := fmt.Sprintf("f%d", c.worker)
			on, _ := object(d["on"])[f].(bool)
			object(d["on"])[f] = !on
		},
	}
}

// thread: a comment is added, or a reply to one, and the likes go up by one.
func thread() *shape {
	return &shape{
		name: "thread", rules: sum("/likes"), units: map[string]float64{"likes": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"post": "holiday", "comments": []any{}, "likes": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			comments := list(d["comments"])
			d["likes"] = num(integer(d["likes"]) + 1)
			if len(comments) > 0 && c.IntN(2) == 0 {
				to := object(comments[c.IntN(len(comments))])
				to["replies"] = append(list(to["replies"]), map[string]any{"by": num(int64(c.worker)), "turn": num(int64(c.round))})
				return
			}
			d["comments"] = append(comments, map[string]any{"id": c.id(), "by": num(int64(c.worker)), "text": "hi", "replies": []any{}})
		},
	}
}

// tasks: entries of a list whose states change, and which are passed on, and now and then a new one.
func tasks() *shape {
	return &shape{
		name:  "tasks",
		rules: []merge.PathRule{{Path: "/tasks", Strategy: merge.ByKey, Key: "id"}},
		seed: func(*change) map[string]any {
			var some []any
			for i := range 8 {
				some = append(some, map[string]any{"id": num(int64(i)), "state": "open", "by": "nobody"})
			}
			return map[string]any{"tasks": some}
		},
		edit: func(c *change, d map[string]any) {
			some := list(d["tasks"])
			t := object(some[c.IntN(len(some))])
			switch c.IntN(8) {
			case 0:
				d["tasks"] = append(some, map[string]any{"id": c.id(), "state": "open", "by": "nobody"})
			case 1, 2:
				t["by"] = fmt.Sprintf("u%d", c.worker)
			default:
				t["state"] = []string{"open", "doing", "review", "done"}[c.IntN(4)]
			}
		},
	}
}

// seats: each client puts its name over another one in a list, and takes it back later.
func seats() *shape {
	return &shape{
		name: "seats",
		seed: func(*change) map[string]any {
			some := make([]any, 24)
			for i := range some {
				some[i] = "free"
			}
			return map[string]any{"film": "x", "seats": some}
		},
		edit: func(c *change, d map[string]any) {
			some := list(d["seats"])
			if len(some) == 0 {
				return // wrong bases have taken them all out
			}
			me := fmt.Sprintf("u%d", c.worker)
			i := c.worker % len(some)
			if some[i] == me {
				me = "free"
			}
			some[i] = me
		},
	}
}

// lines: a log of which the last twenty lines are kept.
func lines() *shape {
	return &shape{
		name: "lines",
		seed: func(*change) map[string]any { return map[string]any{"job": "x", "log": []any{}} },
		edit: func(c *change, d map[string]any) {
			log := append(list(d["log"]), c.time()+" "+c.prose(4))
			d["log"] = log[max(0, len(log)-20):]
		},
	}
}

// scores: a number of one of many players goes up.
func scores() *shape {
	return &shape{
		name: "scores", rules: sum("/scores/*"),
		seed: func(*change) map[string]any { return map[string]any{"game": "x", "scores": map[string]any{}} },
		edit: func(c *change, d map[string]any) {
			player, all := fmt.Sprintf("p%d", c.IntN(20)), object(d["scores"])
			all[player] = num(integer(all[player]) + 10 + c.Int64N(50))
		},
	}
}

// board: cards that are moved, ordered and renamed.
func board() *shape {
	return &shape{
		name: "board",
		seed: func(c *change) map[string]any {
			cards := map[string]any{}
			for i := range 15 {
				cards[fmt.Sprintf("c%d", i)] = map[string]any{"title": c.prose(3), "column": "todo", "at": num(int64(i))}
			}
			return map[string]any{"board": "x", "cards": cards}
		},
		edit: func(c *change, d map[string]any) {
			card := object(object(d["cards"])[fmt.Sprintf("c%d", c.IntN(15))])
			switch c.IntN(4) {
			case 0:
				card["title"] = c.prose(3)
			case 1:
				card["at"] = num(c.Int64N(20))
			default:
				card["column"] = []string{"todo", "doing", "done"}[c.IntN(3)]
			}
		},
	}
}

// window: the last ten values, and how many there were.
func window() *shape {
	return &shape{
		name: "window", rules: sum("/n"), units: map[string]float64{"n": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"sensor": "x", "last": []any{}, "n": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			last := append(list(d["last"]), num(c.Int64N(100_000)))
			d["last"], d["n"] = last[max(0, len(last)-10):], num(integer(d["n"])+1)
		},
	}
}

// invoice: how much of an article is sold changes, and the client computes the total anew.
func invoice() *shape {
	return &shape{
		name: "invoice", rules: sum("/total"), units: map[string]float64{"total": 0},
		seed: func(*change) map[string]any {
			lines, total := []any{}, int64(0)
			for i := range int64(10) {
				lines = append(lines, map[string]any{"pos": num(i), "article": fmt.Sprintf("A-%d", 100+i), "qty": num(1), "price": num(10 + i)})
				total += 10 + i
			}
			return map[string]any{"no": "R-1", "lines": lines, "total": num(total)}
		},
		edit: func(c *change, d map[string]any) {
			lines := list(d["lines"])
			l, qty := object(lines[c.IntN(len(lines))]), 1+c.Int64N(9)
			d["total"] = num(integer(d["total"]) + (qty-integer(l["qty"]))*integer(l["price"]))
			l["qty"] = num(qty)
		},
	}
}

// columns: cards move from one list to another.
func columns() *shape {
	return &shape{
		name: "columns",
		seed: func(c *change) map[string]any {
			var todo []any
			for i := range 12 {
				todo = append(todo, map[string]any{"id": num(int64(i)), "title": c.prose(3)})
			}
			return map[string]any{"todo": todo, "doing": []any{}, "done": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			names := []string{"todo", "doing", "done"}
			from, to := names[c.IntN(3)], names[c.IntN(3)]
			cards := list(d[from])
			if len(cards) == 0 {
				d["todo"] = append(list(d["todo"]), map[string]any{"id": c.id(), "title": c.prose(3)})
				return
			}
			i := c.IntN(len(cards))
			d[from] = slices.Delete(slices.Clone(cards), i, i+1)
			d[to] = append(list(d[to]), cards[i])
		},
	}
}

// auction: the highest bid goes up, with who has made it, and how many there were.
func auction() *shape {
	return &shape{
		name: "auction", rules: append(sum("/bids"), merge.PathRule{Path: "/highest", Strategy: merge.Max}),
		units: map[string]float64{"bids": 1, "highest": 0, "bidder": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"lot": "x", "highest": num(0), "bidder": "", "bids": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			d["highest"], d["bids"] = num(integer(d["highest"])+1+c.Int64N(20)), num(integer(d["bids"])+1)
			d["bidder"] = fmt.Sprintf("u%d", c.worker)
		},
	}
}

// votes: one of four options gets a vote.
func votes() *shape {
	return &shape{
		name: "votes", rules: sum("/options/*/votes"), units: map[string]float64{"votes": 1},
		seed: func(*change) map[string]any {
			var options []any
			for _, o := range []string{"yes", "no", "maybe", "never"} {
				options = append(options, map[string]any{"label": o, "votes": num(0)})
			}
			return map[string]any{"question": "tea?", "options": options}
		},
		edit: func(c *change, d map[string]any) {
			o := object(list(d["options"])[c.IntN(4)])
			o["votes"] = num(integer(o["votes"]) + 1)
		},
	}
}

// holders: each client enters itself in an object, takes itself out again later, and counts its changes.
func holders() *shape {
	return &shape{
		name: "holders", rules: sum("/changes"), units: map[string]float64{"changes": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"room": "x", "holders": map[string]any{}, "changes": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			me, in := fmt.Sprintf("u%d", c.worker), object(d["holders"])
			if _, there := in[me]; there {
				delete(in, me)
			} else {
				in[me] = map[string]any{"since": c.time()}
			}
			d["changes"] = num(integer(d["changes"]) + 1)
		},
	}
}

// reservations: each client enters itself in a list, takes itself out again later, and says how many are in it.
func reservations() *shape {
	return &shape{
		name: "reservations", rules: sum("/changes"), units: map[string]float64{"changes": 1},
		seed: func(*change) map[string]any {
			return map[string]any{"room": "x", "taken": []any{}, "changes": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			me, taken := fmt.Sprintf("u%d", c.worker), list(d["taken"])
			if i := slices.Index(taken, any(me)); i >= 0 {
				d["taken"] = slices.Delete(slices.Clone(taken), i, i+1)
			} else {
				d["taken"] = append(taken, me)
			}
			d["changes"] = num(integer(d["changes"]) + 1)
		},
	}
}

// leaderboard: the best ten players, sorted by score. A player's score goes up.
func leaderboard() *shape {
	return &shape{
		name: "leaderboard",
		seed: func(*change) map[string]any {
			var rows []any
			for i := range 12 {
				rows = append(rows, map[string]any{"player": fmt.Sprintf("p%02d", i), "score": num(int64(1200 - 100*i))})
			}
			return map[string]any{"game": "x", "rows": rows}
		},
		edit: func(c *change, d map[string]any) {
			rows := slices.Clone(list(d["rows"]))
			o := object(rows[c.IntN(len(rows))])
			o["score"] = num(integer(o["score"]) + 10 + c.Int64N(300))
			slices.SortStableFunc(rows, func(a, b any) int { return cmp.Compare(integer(object(b)["score"]), integer(object(a)["score"])) })
			d["rows"] = rows
		},
	}
}

// account: a balance, and the list of what moved it.
func account() *shape {
	return &shape{
		name: "account", rules: sum("/balance"), units: map[string]float64{"balance": 25},
		seed: func(*change) map[string]any {
			return map[string]any{"iban": "DE00", "balance": num(1000), "moves": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			amount := c.Int64N(101) - 50
			d["balance"] = num(integer(d["balance"]) + amount)
			d["moves"] = append(list(d["moves"]), map[string]any{"amount": num(amount), "after": d["balance"], "text": words[c.IntN(12)]})
		},
	}
}

// basket: quantities by article, and a total that the client computes.
func basket() *shape {
	return &shape{
		name: "basket", units: map[string]float64{"total": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"user": "ada", "lines": []any{}, "total": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			sku := fmt.Sprintf("A-%d", c.IntN(30))
			lines := slices.Clone(list(d["lines"]))
			at := slices.IndexFunc(lines, func(l any) bool { return object(l)["sku"] == sku })
			switch {
			case at < 0:
				lines = append(lines, map[string]any{"sku": sku, "qty": num(1), "price": num(int64(len(sku) * 7))})
			case c.IntN(3) == 0:
				lines = slices.Delete(lines, at, at+1)
			default:
				o := object(lines[at])
				o["qty"] = num(integer(o["qty"]) + 1)
			}
			total := int64(0)
			for _, l := range lines {
				total += integer(object(l)["qty"]) * integer(object(l)["price"])
			}
			d["lines"], d["total"] = lines, num(total)
		},
	}
}

// track: where something is, and the last thirty places.
func track() *shape {
	return &shape{
		name: "track", units: map[string]float64{"lat": 0, "lon": 0, "at": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"van": "x", "points": []any{}}
		},
		edit: func(c *change, d map[string]any) {
			at := func(n int) json.Number {
				return json.Number(strconv.FormatFloat(float64(n)+float64(c.IntN(10000))/10000, 'f', 4, 64))
			}
			p := map[string]any{"lat": at(52), "lon": at(13), "at": c.time()}
			d["last"] = p
			points := append(list(d["points"]), any(p))
			d["points"] = points[max(0, len(points)-30):]
		},
	}
}

// grid: cells of a table take a state.
func grid() *shape {
	return &shape{
		name: "grid",
		seed: func(*change) map[string]any {
			var rows []any
			for range 8 {
				var row []any
				for range 8 {
					row = append(row, num(0))
				}
				rows = append(rows, row)
			}
			return map[string]any{"board": "x", "rows": rows}
		},
		edit: func(c *change, d map[string]any) {
			rows := slices.Clone(list(d["rows"]))
			y, x := c.IntN(len(rows)), c.IntN(8)
			row := slices.Clone(list(rows[y]))
			row[x%len(row)] = num((integer(row[x%len(row)]) + 1 + c.Int64N(3)) % 4)
			rows[y] = row
			d["rows"] = rows
		},
	}
}

// article: a text, who wrote last, when, and a revision that counts.
func article() *shape {
	return &shape{
		name: "article", rules: sum("/revision"), units: map[string]float64{"revision": 1, "by": 0, "at": 0},
		seed: func(c *change) map[string]any {
			d := map[string]any{"revision": num(1), "by": "", "at": c.time()}
			for _, k := range []string{"title", "intro", "body", "outro"} {
				d[k] = c.prose(10)
			}
			return d
		},
		edit: func(c *change, d map[string]any) {
			d[[]string{"title", "intro", "body", "outro"}[c.IntN(4)]] = c.prose(10)
			d["revision"], d["by"], d["at"] = num(integer(d["revision"])+1), fmt.Sprintf("u%d", c.worker), c.time()
		},
	}
}

// unread: messages, and for each user how many they haven't read.
func unread() *shape {
	return &shape{
		name: "unread", rules: sum("/unread/*"), units: map[string]float64{},
		seed: func(*change) map[string]any {
			users := map[string]any{}
			for i := range 16 {
				users[fmt.Sprintf("u%d", i)] = num(0)
			}
			return map[string]any{"room": "x", "messages": []any{}, "unread": users}
		},
		edit: func(c *change, d map[string]any) {
			me := fmt.Sprintf("u%d", c.worker%16)
			users := object(d["unread"])
			if c.IntN(3) == 0 && integer(users[me]) > 0 {
				users[me] = num(0)
				return
			}
			d["messages"] = append(list(d["messages"]), map[string]any{"from": me, "text": c.prose(3)})
			for u := range users {
				if u != me {
					users[u] = num(integer(users[u]) + 1)
				}
			}
		},
	}
}

// statistics: count, sum, least and most of values that are sent.
func statistics() *shape {
	return &shape{
		name: "statistics",
		rules: append(sum("/count", "/sum"),
			merge.PathRule{Path: "/least", Strategy: merge.Min}, merge.PathRule{Path: "/most", Strategy: merge.Max}),
		units: map[string]float64{"count": 1, "sum": 50, "least": 0, "most": 0},
		seed: func(*change) map[string]any {
			return map[string]any{"metric": "x", "count": num(0), "sum": num(0), "least": num(1000), "most": num(0)}
		},
		edit: func(c *change, d map[string]any) {
			v := 1 + c.Int64N(100)
			d["count"], d["sum"] = num(integer(d["count"])+1), num(integer(d["sum"])+v)
			d["least"], d["most"] = num(min(integer(d["least"]), v)), num(max(integer(d["most"]), v))
		},
	}
}

// calendar: slots are booked and given back.
func calendar() *shape {
	return &shape{
		name: "calendar",
		seed: func(*change) map[string]any {
			var slots []any
			for i := range 24 {
				slots = append(slots, map[string]any{"at": fmt.Sprintf("%02d:00", i), "by": nil})
			}
			return map[string]any{"day": "2026-11-26", "slots": slots}
		},
		edit: func(c *change, d map[string]any) {
			me := any(fmt.Sprintf("u%d", c.worker))
			slots := list(d["slots"])
			for range 50 {
				o := object(slots[c.IntN(len(slots))])
				if o["by"] == nil {
					o["by"] = me
					return
				}
				if o["by"] == me {
					o["by"] = nil
					return
				}
			}
			d["note"] = c.prose(4)
		},
	}
}

// deadlines: a sorted list of numbers, of which the least is taken.
func deadlines() *shape {
	return &shape{
		name: "deadlines",
		seed: func(*change) map[string]any { return map[string]any{"name": "x", "due": []any{}} },
		edit: func(c *change, d map[string]any) {
			due := slices.Clone(list(d["due"]))
			if len(due) > 4 && c.IntN(2) == 0 {
				d["due"] = due[1:]
				return
			}
			due = append(due, any(num(1_700_000_000+c.Int64N(1_000_000))))
			slices.SortFunc(due, func(a, b any) int { return cmp.Compare(integer(a), integer(b)) })
			d["due"] = due
		},
	}
}
