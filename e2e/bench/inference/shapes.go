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
	return []*shape{counter(), entries(), fields(), cart(), order(), ticket(), profile(), stock(), queue(), tags(), settings(), wiki(), wide(),
		readings(), chat(), switches(), thread(), tasks(), seats(), lines(), scores(), board(), window(), invoice(), columns(), auction(),
		votes(), holders(), reservations()}
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

// readings: small numbers, of which many are equal, with the last one and how many there are.
func readings() *shape {
	return &shape{
		name: "readings", vague: true, rules: sum("/count"), units: map[string]float64{"count": 1, "at": 0},
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
		name: "chat", vague: true, rules: sum("/n"), units: map[string]float64{"n": 1, "at": 0},
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
		name: "switches", vague: true,
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
		name: "thread", vague: true, rules: sum("/likes"), units: map[string]float64{"likes": 1},
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
		name: "tasks", vague: true,
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
		name: "seats", vague: true,
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
		name: "lines", vague: true,
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
		name: "scores", vague: true, rules: sum("/scores/*"),
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
		name: "board", vague: true,
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
		name: "window", vague: true, rules: sum("/n"), units: map[string]float64{"n": 1},
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
		name: "invoice", vague: true, rules: sum("/total"), units: map[string]float64{"total": 0},
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
		name: "columns", vague: true,
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
		name: "auction", vague: true, rules: append(sum("/bids"), merge.PathRule{Path: "/highest", Strategy: merge.Max}),
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
		name: "votes", vague: true, rules: sum("/options/*/votes"), units: map[string]float64{"votes": 1},
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

// holders: each client enters itself in an object, takes itself out again later, and counts its changes.
func holders() *shape {
	return &shape{
		name: "holders", vague: true, rules: sum("/changes"), units: map[string]float64{"changes": 1},
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
		name: "reservations", vague: true, rules: sum("/changes"), units: map[string]float64{"changes": 1},
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
