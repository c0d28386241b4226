package rank

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/internal/doc"
	"optimist/rewrite/tree"
)

// at is a revision of a document that was written once for each version.
func at(version int64, body string) doc.Revision {
	r := doc.Revision{Numbers: doc.Numbers{SeqNo: version, PrimaryTerm: 1}, Version: version}
	if body != "" {
		r.Source = []byte(body)
	}
	return r
}

// closest is Likeliest of revisions that clients have in hand.
func closest(revisions []doc.Revision, sent Sent) int {
	cs := make([]Candidate, len(revisions))
	for i, r := range revisions {
		cs[i].Revision = r
	}
	return Likeliest(cs, sent).Best
}

func TestLikeliest(t *testing.T) {
	absent := doc.Revision{}
	for name, c := range map[string]struct {
		revisions []doc.Revision
		sent      string
		want      int
	}{
		"fewest edits":                    {[]doc.Revision{at(1, `{"a":1,"b":1}`), at(2, `{"a":2,"b":2}`)}, `{"a":2,"b":3}`, 1},
		"then the numbers moved least":    {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":8}`), at(3, `{"a":4}`)}, `{"a":9}`, 1},
		"then the oldest":                 {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":1}`)}, `{"a":2}`, 0},
		"elements count one by one":       {[]doc.Revision{at(1, `{"l":[1,2]}`), at(2, `{"l":[1,2,3]}`)}, `{"l":[1,2,4]}`, 0},
		"what isn't known comes last":     {[]doc.Revision{at(1, ""), at(2, `{"b":1,"c":1}`)}, `{"a":1}`, 1},
		"nor what wasn't changed":         {[]doc.Revision{at(1, ""), at(2, `{"a":1}`)}, `{"a":1}`, 1},
		"nothing changed, if all else is": {[]doc.Revision{at(1, `{"a":1,"b":1,"c":1}`), at(2, `{"a":2,"b":2,"c":2}`)}, `{"a":2,"b":2,"c":2}`, 1},
		"the same change by two":          {[]doc.Revision{at(1, `{"n":1}`), at(2, `{"n":2}`)}, `{"n":2}`, 0},
		"no document is an empty one":     {[]doc.Revision{absent, at(2, `{"a":1,"b":1,"c":1}`)}, `{"x":1}`, 0},
		"no JSON":                         {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":2}`)}, `{`, 0},
		"a delete":                        {[]doc.Revision{at(1, `{"a":1}`), at(2, `{"a":2}`)}, ``, 0},
		"of a document that was seen":     {[]doc.Revision{absent, at(1, `{"a":1}`), at(2, `{"a":2}`)}, ``, 1},
		"of what nobody saw":              {[]doc.Revision{absent}, ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var body []byte
			if c.sent != "" {
				body = []byte(c.sent)
			}
			if got := closest(c.revisions, Sent{Body: body}); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// A document of few states comes back to one that it had. That is a change of what a client has in hand, and no save of what nobody has.
func TestAStateThatReturnsIsAChange(t *testing.T) {
	cs := []Candidate{
		{Revision: at(1, `{"seats":["free","free","free","free"]}`), Spent: true},
		{Revision: at(2, `{"seats":["free","ann","free","free"]}`), Spent: true},
		{Revision: at(3, `{"seats":["bob","ann","free","free"]}`)},
	}
	if c := Likeliest(cs, Sent{Body: []byte(`{"seats":["free","ann","free","free"]}`)}); c.Best != 2 || !c.Ambiguous {
		t.Errorf("%+v", c)
	}
}

// A new document of many members is many changes. That doesn't make it unlikely.
func TestALargeNewDocumentIsMadeFromNothing(t *testing.T) {
	text := strings.Repeat("each new page begins with these words ", 10)
	for i := range 40 {
		text += fmt.Sprintf("w%d ", i)
	}
	created := `{"text":"` + text + `one has been added","by":"a"}`
	sent := `{"text":"` + text + `another was put in","by":"b"}`
	if got := closest([]doc.Revision{{}, at(1, created)}, Sent{Body: []byte(sent)}); got != 0 {
		t.Error("its client would have taken out what the first has put in")
	}
	if got := closest([]doc.Revision{{}, at(1, created)}, Sent{Body: []byte(strings.Replace(created, `"a"`, `"b"`, 1))}); got != 1 {
		t.Error("it has what only the first has put in")
	}
}

// Of a part only the paths that it holds count: what else the revisions differ in was nobody's change.
func TestLikeliestToAPart(t *testing.T) {
	for name, c := range map[string]struct {
		revisions []doc.Revision
		part      string
		want      int
	}{
		"what it doesn't hold is the same": {[]doc.Revision{at(1, `{"l":[1],"a":1,"b":1}`), at(2, `{"l":[1,2],"a":2,"b":2}`)}, `{"l":[1,3]}`, 0},
		"an entry is fewer than two":       {[]doc.Revision{at(1, `{"l":[1]}`), at(2, `{"l":[1,2]}`)}, `{"l":[1,2,3]}`, 1},
		"inside objects":                   {[]doc.Revision{at(1, `{"o":{"n":1,"x":1}}`), at(2, `{"o":{"n":5,"x":9}}`)}, `{"o":{"n":6}}`, 1},
		"no document is an empty one":      {[]doc.Revision{{}, at(2, `{"a":1,"b":1,"c":1}`)}, `{"a":1,"b":1,"c":2}`, 1},
		"what isn't known comes last":      {[]doc.Revision{at(1, ""), at(2, `{"a":1,"b":1}`)}, `{"a":2}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := closest(c.revisions, Sent{Body: []byte(c.part), Part: true}); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// The marks of writes are no content of the client's, whether it sends them back or leaves them out, as one does that knows the fields of its
// documents.
func TestLikeliestDespiteMarks(t *testing.T) {
	const second, third, fourth = `"9d0k2m4c1a-73kq9v5t0e-1-1"`, `"0c8h6d2f4s-73kq9v5t0e-2-1"`, `"5v1g7b3n9z-73kq9v5t0e-3-1"`
	cs := []doc.Revision{
		at(1, `{"options":{"a":"first value"},"n":5}`),
		at(2, `{"options":{"a":"first value"},"n":6,"_writes":[`+second+`]}`),
		at(3, `{"options":{"a":"first value"},"n":7,"_writes":[`+second+`,`+third+`]}`),
		at(4, `{"options":{"a":"first value","b":"second value"},"n":7,"_writes":[`+second+`,`+third+`,`+fourth+`]}`),
	}
	for sent, want := range map[string]int{
		`{"options":{"a":"first value"},"n":8}`:                                              2,
		`{"options":{"a":"first value"},"n":6,"_writes":[]}`:                                 0,
		`{"options":{"a":"first value","c":"third value"},"n":6,"_writes":[` + second + `]}`: 1,
		`{"options":{"a":"first value","b":"second value"},"n":8}`:                           3,
		`{"options":{"a":"first value","b":"second value","c":"third value"},"n":7}`:         3,
	} {
		if got := closest(cs, Sent{Body: []byte(sent), Marks: "_writes"}); got != want {
			t.Errorf("%s: %d, want %d", sent, got, want)
		}
	}
}

// A text of very many words takes no more memory than a document of very many values: its revision isn't compared.
func TestTextsOfVeryManyWordsArentDigested(t *testing.T) {
	text := func(words int) []byte { return []byte(`{"t":"` + strings.Repeat("a ", words) + `"}`) }
	if digestOf(text(maxValues)) == nil {
		t.Error("it is small enough")
	}
	if d := digestOf(text(4 * maxValues)); d != nil {
		t.Errorf("%d bytes", Size(d))
	}
}

// One client sets a state back to what it was. As long as nothing shows that several clients are at work, that is no save of what somebody
// has only looked at.
func TestInQuietAStateIsSetBackAndNotSavedAgain(t *testing.T) {
	revisions := []doc.Revision{at(1, `{"state":"open","by":"ann"}`), at(2, `{"state":"closed","by":"ann"}`), at(3, `{"state":"review","by":"ann"}`)}
	sent := Sent{Body: []byte(`{"state":"open","by":"ann"}`)}
	if got := closest(revisions, sent); got != 0 {
		t.Errorf("in a crowd: %d", got)
	}
	sent.Quiet = true
	if got := closest(revisions, sent); got == 0 {
		t.Errorf("in quiet: %d", got)
	}
}

// A client that is alone often takes back its own change, and somebody may look at each of its revisions.
func TestAClientThatIsAloneTakesBackItsOwnChange(t *testing.T) {
	step := func(state, by string) string { return `{"order":"PO-4711","state":"` + state + `","by":` + by + `}` }
	revisions := []doc.Revision{at(1, step("rejected", `"ann"`)), at(2, step("pending", "null")), at(3, step("approved", `"ann"`))}
	for alone, want := range map[int]int{lone: 2, lone - 1: 0} {
		if got := closest(revisions, Sent{Body: []byte(step("pending", "null")), Quiet: true, Alone: alone}); got != want {
			t.Errorf("%d bits: %d", alone, got)
		}
	}
	// A count may go back to what it was because two clients counted.
	count := func(n int) string { return fmt.Sprintf(`{"order":"PO-4711","open":%d}`, n) }
	w := &weighing{lone: true}
	cs := []Candidate{heldAt(1, count(7)), heldAt(2, count(5)), heldAt(3, count(8))}
	if v := w.weigh(cs, digesterOf([]byte(count(5))), false); v[2].price != 2 {
		t.Errorf("%+v", v)
	}
}

// Writes of several clients are often combined into one revision, which moves the numbers of all of them. Yet each client moves its own.
func TestNumbersThatClientsMoveTogetherAreNoOnesHabit(t *testing.T) {
	body := func(round, of int, ahead ...int) string {
		var b strings.Builder
		for i := range 16 {
			n := round
			if i < of {
				n++ // these clients are a round ahead
			}
			if slices.Contains(ahead, i) {
				n++
			}
			fmt.Fprintf(&b, `,"own%d":%d,"twice%d":%d`, i, n, i, 2*n)
		}
		return "{" + b.String()[1:] + "}"
	}
	var cs []Candidate
	for round := range int64(4) {
		for k := range int64(2) { // the third of the round, which moves the others' numbers, isn't known any more
			cs = append(cs, Candidate{Revision: at(3*round+k+1, body(int(round), 11*int(k))), Spent: true})
		}
	}
	cs = append(cs, Candidate{Revision: at(13, body(4, 0))})
	if c := Likeliest(cs, Sent{Body: []byte(body(4, 0, 12))}); c.Best != len(cs)-1 || !c.Certain {
		t.Errorf("%+v", c)
	}
}

// A write may hold several changes, and then moves a count by several. A change moves it by one all the same.
func TestACountIsMovedOnceByEachChangeOfAWrite(t *testing.T) {
	best := func(changes ...int) int {
		cs := []Candidate{{Revision: at(1, `{"bids":0,"highest":1,"bidder":"u0"}`), Spent: true}}
		bids := 0
		for i, n := range changes {
			bids += n
			body := fmt.Sprintf(`{"bids":%d,"highest":%d,"bidder":"u%d"}`, bids, 20*(i+1), i+1)
			cs = append(cs, Candidate{Revision: at(int64(i+2), body), Changes: n})
		}
		// This is from the last but one, but nearer to the last.
		sent := fmt.Sprintf(`{"bids":%d,"highest":%d,"bidder":"u9"}`, bids-changes[len(changes)-1]+1, 20*len(changes)-6)
		return Likeliest(cs, Sent{Body: []byte(sent)}).Best
	}
	for _, changes := range [][]int{{1, 1, 1, 1, 3}, {3, 2, 4, 2, 3}, {5, 1, 2, 3}, {1, 4, 3, 3}} {
		if got := best(changes...); got != len(changes)-1 {
			t.Errorf("%v: %d", changes, got)
		}
	}
}

// The longer a number was moved by the same step, the dearer is another one. A step that is taken now and then costs little, and one that is
// taken often costs nothing.
func TestAnOddStepCostsByHowOftenItWasSeen(t *testing.T) {
	for _, c := range [][4]int{{0, 3, 0, 12}, {0, 12, 1, 12}, {1, 12, 4, 12}, {4, 12, 5, 12}} {
		less, more := unlikely(c[0], c[1]), unlikely(c[2], c[3])
		if c[0] == c[2] {
			less, more = more, less
		}
		if less <= more {
			t.Errorf("%d of %d: %d; %d of %d: %d", c[0], c[1], unlikely(c[0], c[1]), c[2], c[3], unlikely(c[2], c[3]))
		}
	}
	if unlikely(5, 12) != 0 || unlikely(0, 1<<20) != dearest {
		t.Errorf("%d, %d", unlikely(5, 12), unlikely(0, 1<<20))
	}
}

// A row of a table is one value: the numbers in it, in whatever row they are, don't tell the revision.
func TestRowsOfATableAreComparedWhole(t *testing.T) {
	revisions := []doc.Revision{
		at(1, `{"rows":[[0,1,0],[1,0,0],[2,0,1]]}`), at(2, `{"rows":[[0,0,1],[1,0,0],[2,0,1]]}`), at(3, `{"rows":[[0,0,1],[1,0,0],[0,1,2]]}`),
	}
	for base, sent := range []string{`{"rows":[[0,1,0],[0,0,1],[2,0,1]]}`, `{"rows":[[0,0,1],[1,1,0],[2,0,1]]}`, `{"rows":[[0,0,1],[1,1,0],[0,1,2]]}`} {
		if got := closest(revisions, Sent{Body: []byte(sent)}); got != base {
			t.Errorf("%s: %d, want %d", sent, got, base)
		}
	}
}

// A slot is known by its time of day. The time at which something was written identifies nothing, because a correction may keep it or not.
func TestWhatIdentifiesAnEntry(t *testing.T) {
	for entry, want := range map[string]bool{
		`{"at":"10:00","by":null}`: true, `{"date":"2026-11-26","by":"ada"}`: true, `{"at":"2026-11-26T10:00:00Z","text":"x"}`: false,
		`{"text":"x"}`: false, `{"at":"2026-11-26T10:00:00Z","id":7}`: true, `{"at":10}`: true, `{"id":null}`: false, `{"email":"a@example.org"}`: true,
	} {
		var doc tree.Tree
		if err := doc.ParseObject([]byte(`{"list":[`+entry+`]}`), tree.Limits{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := identityOf(doc.Root().First().First(), ""); (got != 0) != want {
			t.Errorf("%s: %v", entry, got)
		}
	}
}

// Mostly an entry of a list is known by its code. But where all events have one of a few codes, it says what has happened, and not which
// event it is. Only if the rule says so, clients know entries by it all the same.
func TestWhereNamesRepeatTheyIdentifyNothing(t *testing.T) {
	event := func(minute int, code, place string) string {
		return fmt.Sprintf(`{"at":"2026-05-01T10:%02d:00Z","code":%q,"place":%q}`, minute, code, place)
	}
	list := func(events ...string) string { return `{"events":[` + strings.Join(events, ",") + `]}` }
	before := []string{event(1, "scan", "Berlin"), event(2, "scan", "Hamburg"), event(3, "scan", "Munich")}
	after := []string{event(4, "out", "Munich"), event(5, "scan", "Hamburg"), event(6, "out", "Hamburg")}
	with := func(i int, e string) string { return list(slices.Insert(slices.Concat(before, after), i, e)...) }
	theirs, mine := event(7, "scan", "Berlin"), event(8, "scan", "Berlin")
	for name, i := range map[string]int{"at the end": 6, "at the beginning": 0, "in between": 1} {
		revisions := [3]string{list(slices.Concat(before, after)...), with(i, theirs), with(i, mine)}
		seen := []doc.Revision{at(1, list(before...)), at(2, revisions[0]), at(3, revisions[1])}
		if got := closest(seen, Sent{Body: []byte(revisions[2])}); got != 1 {
			t.Errorf("%s: %d, want the one without the other client's event", name, got)
		}
		if got := closest(seen, Sent{Body: []byte(revisions[2]), Keys: NewKeys([]string{"code"})}); got != 2 {
			t.Errorf("%s, under a rule with by_key: %d, want the one with an event of this code in its place", name, got)
		}
	}
}

// If few names repeat, clients still know the other entries by their names.
func TestHowOftenNamesRepeat(t *testing.T) {
	for entries, want := range map[string]int{
		`{"name":1},{"name":2},{"name":3},{"name":4}`: 4,
		`{"name":1},{"name":1},{"name":2},{"name":2}`: 4,
		`{"name":1},{"name":1},{"name":1},{"host":1}`: 4,
		`{"name":1},{"name":1},{"name":1},{"name":1}`: 0,
		`{"host":1},{"host":1},{"host":1},{"host":1}`: 4,
		`{"sku":1,"no":1},{"sku":1,"no":2},{"sku":1}`: 0,
	} {
		named := 0
		for _, m := range digesterOf([]byte(`{"list":[` + entries + `]}`)).members {
			if m.entry {
				named++
			}
		}
		if named != want {
			t.Errorf("%s: %d entries have a place of their own, want %d", entries, named, want)
		}
	}
}

// A name tells what a value belongs to, also in a list whose own entries have no names.
func TestNamesInEntriesWithoutNames(t *testing.T) {
	board := func(taken int) string {
		cards := make([]string, 20)
		for i := range cards {
			by := "nobody so far"
			if i == taken {
				by = "Ada Lovelace"
			}
			cards[i] = fmt.Sprintf(`{"id":"card %d","by":%q}`, i, by)
		}
		return `{"columns":[{"cards":[` + strings.Join(cards, ",") + `]}]}`
	}
	seen := []doc.Revision{at(1, board(-1)), at(2, board(0))}
	if got := closest(seen, Sent{Body: []byte(board(1))}); got != 0 {
		t.Errorf("%d, want the one in which nobody has taken the first card", got)
	}
}

// A digest keeps how it differs from the one that it was compared with last. Whatever it was compared with before, the choice is the same.
func TestWhatDigestsKeepChangesNoChoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := func(name string) string {
			values := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 6).Draw(t, name)
			return strings.ReplaceAll(fmt.Sprintf(`{"a":%d,"b":%d,"list":%v}`, values[0], len(values), values), " ", ",")
		}
		all := make([]Candidate, 6)
		for i := range all {
			all[i].Revision = at(int64(i+1), source("source"))
			all[i].Digest = digestOf(all[i].Source)
		}
		for range 4 {
			var kept, fresh []Candidate
			for _, c := range all {
				if rapid.Bool().Draw(t, "is a candidate") {
					kept = append(kept, c)
					c.Digest = digestOf(c.Source)
					fresh = append(fresh, c)
				}
			}
			if len(kept) == 0 {
				continue
			}
			sent := Sent{Body: []byte(source("sent"))}
			if got, want := Likeliest(kept, sent), Likeliest(fresh, sent); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}

// Who sells several pieces at once moves two numbers by an unusual step, for one reason.
func TestEachFurtherNumberWithAnUnusualStepCostsHalf(t *testing.T) {
	priceOf := func(body func(n int) string) int {
		var cs []Candidate
		for n := range 12 {
			cs = append(cs, heldAt(int64(n+1), body(n)))
		}
		return (&weighing{}).weigh(cs, digesterOf([]byte(body(14))), false)[11].price
	}
	one := priceOf(func(n int) string { return fmt.Sprintf(`{"sold":%d}`, n) })
	three := priceOf(func(n int) string { return fmt.Sprintf(`{"left":%d,"sold":%d,"value":%d}`, 100-n, n, 9*n) })
	if one == 0 || three != one+2*(one-one/2) {
		t.Errorf("one number costs %d, three cost %d", one, three)
	}
	late := priceOf(func(n int) string { return fmt.Sprintf(`{"late":%d}`, max(0, n-8)) })
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // the order in which numbers are judged depends on their names
		mixed := priceOf(func(n int) string { return fmt.Sprintf(`{"left":%d,"sold":%d,%q:%d}`, 100-n, n, name, max(0, n-8)) })
		if late == 0 || late == one || mixed != one+(one-one/2)+(late-late/2) {
			t.Errorf("two numbers cost %d each, and %s costs %d, but all three cost %d", one, name, late, mixed)
		}
	}
}
