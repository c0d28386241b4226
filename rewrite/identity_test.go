package rewrite

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// player is an element of a list that clients keep in an order, while each changes its own element.
type player struct {
	Name  string `json:"name"`
	Score int    `json:"score"`
}

type board struct {
	Players []player `json:"players"`
}

// TestElementsThatAreChangedAndMovedStayThemselves has several clients at once change the score of one player each, and put the list into an
// order, over many rounds. Every player is there once at the end, with the last score that its client has sent.
func TestElementsThatAreChangedAndMovedStayThemselves(t *testing.T) {
	m := mustMerger(t, Sent)
	rapid.Check(t, func(t *rapid.T) {
		want, current := map[string]int{}, board{}
		for _, name := range []string{"ann", "bob", "cid", "dan", "eve"} {
			want[name] = 0
			current.Players = append(current.Players, player{Name: name})
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			base, stored := encode(t, current), encode(t, current)
			for _, mine := range rapid.Permutation(current.Players).Draw(t, "clients")[:rapid.IntRange(1, 4).Draw(t, "n")] {
				sent := board{slices.Clone(current.Players)}
				for i, p := range sent.Players {
					if p.Name == mine.Name {
						sent.Players[i].Score += rapid.IntRange(1, 8).Draw(t, "step")
						want[p.Name] = sent.Players[i].Score
					}
				}
				slices.SortStableFunc(sent.Players, func(a, b player) int { return cmp.Compare(b.Score, a.Score) })
				res, err := m.Merge(base, encode(t, sent), stored)
				if err != nil || len(res.Overwritten) > 0 {
					t.Fatalf("base %s\nsent %s\ncurrent %s\ngot %s, overwritten %q, %v", base, encode(t, sent), stored, res.Doc, res.Overwritten, err)
				}
				stored = res.Doc
			}
			current = board{}
			if err := json.Unmarshal(stored, &current); err != nil {
				t.Fatal(err)
			}
			checkPlayers(t, current, want)
		}
	})
}

func checkPlayers(t *rapid.T, current board, want map[string]int) {
	got := map[string]int{}
	for _, p := range current.Players {
		got[p.Name] = p.Score
	}
	if len(current.Players) != len(want) {
		t.Fatalf("%d players: %v, want %v", len(current.Players), current.Players, want)
	}
	for name, score := range want {
		if got[name] != score {
			t.Fatalf("%s has %d: %v, want %v", name, got[name], current.Players, want)
		}
	}
}

func encode(t *rapid.T, b any) []byte {
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ticket is an element of a list into which clients put tickets and take them out, while others add notes to them.
type ticket struct {
	ID    string   `json:"id"`
	Notes []string `json:"notes"`
}

// TestNotesStayWithTheirTicket has several clients at once put in and take out tickets at random places, and add notes. A note names its
// ticket. It is never in another one, and is lost only with the ticket.
func TestNotesStayWithTheirTicket(t *testing.T) {
	type list struct {
		Tickets []ticket `json:"tickets"`
	}
	m := mustMerger(t, Sent)
	rapid.Check(t, func(t *rapid.T) {
		current, n := list{[]ticket{{ID: "0", Notes: []string{}}}}, 0
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			base, stored := encode(t, current), encode(t, current)
			for range rapid.IntRange(1, 4).Draw(t, "clients") {
				var sent list
				if err := json.Unmarshal(base, &sent); err != nil {
					t.Fatal(err)
				}
				n++
				at := rapid.IntRange(0, len(sent.Tickets)).Draw(t, "at")
				note := ""
				switch what := rapid.IntRange(0, 2).Draw(t, "what"); {
				case what == 0:
					sent.Tickets = slices.Insert(sent.Tickets, at, ticket{ID: strconv.Itoa(n), Notes: []string{}})
				case at == len(sent.Tickets):
				case what == 1:
					sent.Tickets[at] = ticket{ID: strconv.Itoa(n), Notes: []string{}}
				default:
					note = sent.Tickets[at].ID + "/" + strconv.Itoa(n)
					sent.Tickets[at].Notes = append(sent.Tickets[at].Notes, note)
				}
				res, err := m.Merge(base, encode(t, sent), stored)
				if err != nil {
					t.Fatal(err)
				}
				if note != "" && strings.Count(string(res.Doc), strconv.Quote(note)) != 1 {
					t.Fatalf("base %s\nsent %s\ncurrent %s\ngot %s", base, encode(t, sent), stored, res.Doc)
				}
				stored = res.Doc
			}
			current = list{}
			if err := json.Unmarshal(stored, &current); err != nil {
				t.Fatal(err)
			}
			for _, ticket := range current.Tickets {
				for _, note := range ticket.Notes {
					if id, _, _ := strings.Cut(note, "/"); id != ticket.ID {
						t.Fatalf("note %s is in ticket %s", note, ticket.ID)
					}
				}
			}
		}
	})
}

// stocked is an element that only its product and its size together tell from others, or its kind, which is an object.
type stocked struct {
	Product string            `json:"product,omitempty"`
	Size    string            `json:"size,omitempty"`
	Kind    map[string]string `json:"kind,omitempty"`
	Stock   int               `json:"stock"`
}

// TestCountsAreNoIdentities has several clients at once change the stock of one element each. All stocks differ, and tell the
// elements apart by chance. Each element is there once at the end, and each step counts.
func TestCountsAreNoIdentities(t *testing.T) {
	type shop struct {
		Lines []stocked `json:"lines"`
	}
	m := mustMerger(t, Sent, PathRule{Path: "/lines/*/stock", Strategy: Sum})
	unruled := mustMerger(t, Sent)
	lists := map[string][]stocked{
		"product and size": {
			{Product: "shirt", Size: "S"}, {Product: "shirt", Size: "L"}, {Product: "coat", Size: "S"}, {Product: "coat", Size: "L"},
		},
		"kind":    {{Kind: map[string]string{"size": "S"}}, {Kind: map[string]string{"size": "M"}}, {Kind: map[string]string{"size": "L"}}},
		"nothing": {{}, {}, {}, {}},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				read := shop{slices.Clone(list)}
				for k := range read.Lines {
					read.Lines[k].Stock = 100 * k
				}
				base, stored := encode(t, read), encode(t, read)
				want := shop{slices.Clone(read.Lines)}
				for range rapid.IntRange(2, 4).Draw(t, "clients") {
					sent := shop{slices.Clone(read.Lines)}
					at, step := rapid.IntRange(0, len(list)-1).Draw(t, "at"), rapid.IntRange(1, 9).Draw(t, "step")
					sent.Lines[at].Stock += step
					want.Lines[at].Stock += step
					res, err := m.Merge(base, encode(t, sent), stored)
					if err != nil {
						t.Fatal(err)
					}
					if name != "nothing" {
						checkLength(t, unruled, base, encode(t, sent), stored, len(list))
					}
					stored = res.Doc
				}
				if string(stored) != string(encode(t, want)) {
					t.Fatalf("base %s\ngot  %s\nwant %s", base, stored, encode(t, want))
				}
			})
		})
	}
}

// checkLength fails if a merge gives the list another length.
func checkLength(t *rapid.T, m *Merger, base, sent, current []byte, want int) {
	res, err := m.Merge(base, sent, current)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Lines []stocked }
	if err := json.Unmarshal(res.Doc, &got); err != nil || len(got.Lines) != want {
		t.Fatalf("base %s\nsent %s\ncurrent %s\ngot %s, %v", base, sent, current, res.Doc, err)
	}
}

// task is an element that has the number of its place. A client that moves tasks numbers them anew.
type task struct {
	Title string `json:"title"`
	Done  int    `json:"done"`
	Order int    `json:"order"`
}

// TestElementsWithNumberedPlacesStayThemselves has one client exchange two tasks and number all anew. Each of the others changes how much of
// one task is done. Each task keeps its title, and what was done of it. A number that stays where it is says nothing about which task it is.
func TestElementsWithNumberedPlacesStayThemselves(t *testing.T) {
	type plan struct {
		Tasks []task `json:"tasks"`
	}
	for name, m := range map[string]*Merger{
		"sum":  mustMerger(t, Sent, PathRule{Path: "/tasks/*/done", Strategy: Sum}),
		"sent": mustMerger(t, Sent),
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var read plan
				for k := range rapid.IntRange(2, 5).Draw(t, "tasks") {
					read.Tasks = append(read.Tasks, task{Title: string(rune('a' + k)), Done: rapid.IntRange(0, 9).Draw(t, "done"), Order: k})
				}
				want := map[string]int{}
				for _, one := range read.Tasks {
					want[one.Title] = one.Done
				}
				moved := plan{slices.Clone(read.Tasks)}
				i, j := rapid.IntRange(0, len(moved.Tasks)-1).Draw(t, "i"), rapid.IntRange(0, len(moved.Tasks)-1).Draw(t, "j")
				moved.Tasks[i], moved.Tasks[j] = moved.Tasks[j], moved.Tasks[i]
				for k := range moved.Tasks {
					moved.Tasks[k].Order = k
				}
				writes := []plan{moved}
				for range rapid.IntRange(1, 3).Draw(t, "others") {
					at, sent := rapid.IntRange(0, len(read.Tasks)-1).Draw(t, "at"), plan{slices.Clone(read.Tasks)}
					if want[sent.Tasks[at].Title] == sent.Tasks[at].Done {
						sent.Tasks[at].Done += 100
						want[sent.Tasks[at].Title] += 100
						writes = append(writes, sent)
					}
				}
				base, stored := encode(t, read), encode(t, read)
				for _, sent := range rapid.Permutation(writes).Draw(t, "turns") {
					res, err := m.Merge(base, encode(t, sent), stored)
					if err != nil {
						t.Fatal(err)
					}
					stored = res.Doc
				}
				var got plan
				if err := json.Unmarshal(stored, &got); err != nil {
					t.Fatal(err)
				}
				is := map[string]int{}
				for _, one := range got.Tasks {
					is[one.Title] = one.Done
				}
				if len(got.Tasks) != len(read.Tasks) || !maps.Equal(is, want) {
					t.Fatalf("base %s\nmoved %s\ngot  %s\nwant %v", base, encode(t, moved), stored, want)
				}
			})
		})
	}
}

// TestACountBeforeTheNameIsNoIdentity has one client move a player, and another change the same player. The points, which a rule counts, stand
// before the name, and have as many values in common.
func TestACountBeforeTheNameIsNoIdentity(t *testing.T) {
	m := mustMerger(t, Sent, PathRule{Path: "/top/*/points", Strategy: Sum})
	base := `{"top":[{"points":9,"name":"ann","note":"","tag":""},{"points":4,"name":"bob","note":"","tag":""}]}`
	sent := `{"top":[{"points":4,"name":"bob","note":"","tag":""},{"points":9,"name":"ann","note":"a","tag":""}]}`
	current := `{"top":[{"points":9,"name":"ann","note":"","tag":"b"},{"points":4,"name":"bob","note":"","tag":""}]}`
	res, err := m.Merge([]byte(base), []byte(sent), []byte(current))
	want := `{"top":[{"points":4,"name":"bob","note":"","tag":""},{"points":9,"name":"ann","note":"a","tag":"b"}]}`
	if err != nil || string(res.Doc) != want {
		t.Fatalf("got %s, %v, want %s", res.Doc, err, want)
	}
}

// TestAnOrderThatTheClientMadeIsKept has one client put a list in another order, and another one change all of it in its places.
func TestAnOrderThatTheClientMadeIsKept(t *testing.T) {
	m := mustMerger(t, Sent, PathRule{Path: "/l", Strategy: ByKey, Key: "K"})
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			K string
			N int
		}
		var read, changed, want []one
		for k := range rapid.IntRange(0, 12).Draw(t, "tasks") {
			key := string(rune('a' + k))
			read, changed = append(read, one{K: key}), append(changed, one{key, k + 1})
		}
		sent := rapid.Permutation(read).Draw(t, "sent")
		for _, e := range sent {
			want = append(want, one{e.K, int(e.K[0]-'a') + 1})
		}
		doc := func(l []one) []byte { return encode(t, map[string]any{"l": slices.Concat([]one{}, l)}) }
		res, err := m.Merge(doc(read), doc(sent), doc(changed))
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Doc) != string(doc(want)) {
			t.Fatalf("sent %s\ngot  %s\nwant %s", doc(sent), res.Doc, doc(want))
		}
	})
}
