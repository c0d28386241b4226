package rank

import (
	"fmt"
	"strings"
	"testing"
)

// spentAt is a candidate that no client has in hand.
func spentAt(version int64, body string) Candidate {
	return Candidate{Revision: at(version, body), Spent: true}
}

func heldAt(version int64, body string) Candidate { return Candidate{Revision: at(version, body)} }

func TestWhatOthersWroteTellsTheBase(t *testing.T) {
	const text = "the quick brown fox jumps over the lazy dog"
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       int
	}{
		"nobody takes out what somebody has just put in": {
			[]Candidate{heldAt(1, `{"l":[],"n":0}`), heldAt(2, `{"l":["apples"],"n":1}`)}, `{"l":["bread"],"n":1}`, 0},
		"nor puts in what somebody has taken out": {
			[]Candidate{heldAt(1, `{"l":["apples","pears"]}`), heldAt(2, `{"l":["pears"]}`)}, `{"l":["apples","pears","bread"]}`, 0},
		"nor writes the same text once more": {
			[]Candidate{heldAt(1, `{"a":"x","t":""}`), heldAt(2, `{"a":"x","t":"`+text+`"}`)}, `{"a":"y","t":"` + text + `"}`, 1},
		"of a long text the words count": {
			[]Candidate{heldAt(1, `{"t":"`+text+`"}`), heldAt(2, `{"t":"`+strings.Replace(text, "quick brown", "slow red", 1)+`"}`)},
			`{"t":"` + strings.Replace(text, "lazy dog", "sleeping cat", 1) + `"}`, 0},
		"a key that others have added was seen": {
			[]Candidate{heldAt(1, `{"by":{}}`), heldAt(2, `{"by":{"ada":1}}`)}, `{"by":{"ada":1,"bob":1}}`, 1},
		"two may take the same out": {
			[]Candidate{heldAt(1, `{"jobs":["mail to ada","mail to bob"]}`), heldAt(2, `{"jobs":["mail to bob"]}`)}, `{"jobs":["mail to bob","mail to eve"]}`, 1},
		"a count goes up by one": {
			[]Candidate{heldAt(1, `{"n":1}`), heldAt(2, `{"n":2}`), heldAt(3, `{"n":3}`), heldAt(4, `{"n":4}`), heldAt(8, `{"n":8}`)}, `{"n":5}`, 3},
		"also after an unchanged save": {
			[]Candidate{heldAt(1, `{"n":1}`), heldAt(2, `{"n":1}`), heldAt(3, `{"n":2}`)}, `{"n":2}`, 0},
		"what nobody has in hand comes after what somebody has": {
			[]Candidate{spentAt(1, `{"a":1,"b":1}`), heldAt(2, `{"a":1,"b":2}`)}, `{"a":5,"b":2}`, 1},
		"unless all speaks for it": {
			[]Candidate{spentAt(1, `{"t":"`+text+`"}`), heldAt(2, `{"t":"something else, of some more words"}`)}, `{"t":"` + text + ` twice"}`, 0},
		"a step that is far too large is none": {
			[]Candidate{heldAt(1, `{"n":0}`), spentAt(70_000, `{"n":69999}`)}, `{"n":70000}`, 1},
		"a time is near to what another client has just set, and says nothing against an entry": {
			[]Candidate{heldAt(1, `{"l":[],"by":null,"at":1795827600000}`), heldAt(2, `{"l":["looked at it"],"by":null,"at":1795831200000}`)},
			`{"l":[],"by":"bob","at":1795831200050}`, 0},
		"nor is it in seconds, with a fraction": {
			[]Candidate{heldAt(1, `{"l":[],"at":1795827600.467413}`), heldAt(2, `{"l":["looked at it"],"at":1795831200.351579}`)},
			`{"l":["replaced it"],"at":1795831200.400001}`, 0},
		"clients may move a number by nearly the same": {
			[]Candidate{heldAt(1, `{"n":0,"l":[]}`), heldAt(2, `{"n":1500,"l":["first payment"]}`), heldAt(3, `{"n":2998,"l":["first payment","second"]}`)},
			`{"n":1502,"l":["third payment"]}`, 0},
		"who makes a document writes what every new one has": {
			[]Candidate{{}, heldAt(1, `{"user":"ada","currency":"EUR","items":["apples"],"count":1}`)},
			`{"user":"ada","currency":"EUR","items":["bread"],"count":1}`, 0},
		"who changes one keeps what others have put in": {
			[]Candidate{{}, spentAt(1, `{"user":"ada","items":["apples from Kent","red cherries"]}`)}, `{"user":"ada","items":["apples from Kent","red cherries","bread"]}`, 1},
		"a number is made by a step from nothing": {
			[]Candidate{{}, heldAt(6, `{"n":6}`), heldAt(7, `{"n":7}`), heldAt(8, `{"n":8}`), heldAt(9, `{"n":9}`)}, `{"n":8}`, 2},
		"of words that return each says little, and an entry that is taken out says more": {
			[]Candidate{spentAt(1, `{"s":"waiting for customer","l":[]}`), spentAt(2, `{"s":"is being worked at","l":[]}`), spentAt(3, `{"s":"waiting for customer","l":[]}`),
				heldAt(4, `{"s":"is being worked at","l":[]}`), heldAt(5, `{"s":"waiting for customer","l":["my printer is on fire"]}`)},
			`{"s":"waiting for customer","l":[],"by":"bob"}`, 3},
		"nobody puts an entry in the place of one that somebody has just put in": {
			[]Candidate{heldAt(1, `{"l":[3],"n":1}`), heldAt(2, `{"l":[3,5],"n":2}`)}, `{"l":[3,8],"n":2}`, 0},
		"an entry says more than its values one by one": {
			[]Candidate{heldAt(1, `{"l":[],"n":0,"on":false,"new":true}`), heldAt(2, `{"l":[{"by":"a","text":"ok"}],"n":1,"on":true,"new":false}`)},
			`{"l":[{"by":"b","text":"ok"}],"n":1,"on":true,"new":false}`, 0},
		"the first change brings keys, also from two clients": {
			[]Candidate{heldAt(1, `{"n":0,"l":[],"last":{}}`), heldAt(2, `{"n":1,"l":["yes"],"last":{"from":"ada","at":"9:00","device":"phone"}}`)},
			`{"n":1,"l":["no"],"last":{"from":"bob","at":"9:01","device":"desk"}}`, 0},
		"an object is taken out in one go, whatever is in it": {
			[]Candidate{spentAt(1, `{"holders":{},"n":1}`), heldAt(2, `{"holders":{"ada":{"since":"2026-11-25T10:00:00Z","for":"the nightly run","hosts":["one","two"]}},"n":2}`)},
			`{"holders":{},"n":3}`, 1},
		"what one client still had says nothing about what others took out": {
			[]Candidate{heldAt(1, `{"jobs":["send the yearly mail to ada","mail to bob"],"done":0}`), spentAt(2, `{"jobs":["mail to bob"],"done":1}`),
				{Revision: at(3, `{"jobs":["send the yearly mail to ada","mail to bob","mail to eve"],"done":0}`), Spent: true, View: true}},
			`{"jobs":["mail to bob","mail to joe"],"done":1}`, 0},
		"a text in a list that is written again and again is as likely to be the newest": {
			[]Candidate{spentAt(1, `{"l":["first draft of what this is all about"],"n":1}`), spentAt(2, `{"l":["first draft of what this is all about","introduction"],"n":2}`),
				heldAt(3, `{"l":["third draft of what this is all about","introduction"],"n":3}`), heldAt(4, `{"l":["fourth draft of what this is all about","introduction"],"n":4}`)},
			`{"l":["fifth draft of what this is all about","introduction"],"n":5}`, 3},
		"so is a text that is written anew, however long it was": {
			[]Candidate{spentAt(1, `{"t":"a text of just so many words as these","n":1}`), heldAt(2, `{"t":"one of which a few more are there now","n":2}`),
				heldAt(3, `{"t":"`+strings.Repeat(text+", and ", 5)+`","n":3}`)}, `{"t":"nothing at all stands here that stood there","n":4}`, 2},
		"any two texts share some words": {
			[]Candidate{heldAt(1, `{"t":"at the end of the day he went out of the house","n":1}`), heldAt(2, `{"t":"`+text+`","n":2}`)},
			`{"t":"in spite of the rain it is warm at the end of August","n":3}`, 1},
		"nor has who makes a long text of a short one": {
			[]Candidate{heldAt(1, `{"t":"nothing is known of this place yet","n":1}`), heldAt(2, `{"t":"nothing is known of this place yet, `+text+`","n":2}`)},
			`{"t":"nothing is known of this place yet, ` + text + `, and whoever comes by may add all that others have told of it since, with every name","n":3}`, 1},
		"but who adds to a text hasn't written it anew": {
			[]Candidate{heldAt(1, `{"t":"`+text+`","n":1}`), heldAt(2, `{"t":"another client has replaced all of the text","n":2}`)}, `{"t":"` + text + `, twice","n":2}`, 0},
		"nobody takes out an entry that somebody has just put in, and puts in another": {
			[]Candidate{heldAt(1, `{"l":[],"n":0}`), heldAt(2, `{"l":[{"id":1,"on":true}],"n":1}`)}, `{"l":[{"id":2,"on":true}],"n":1}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			best := Likeliest(c.candidates, Sent{Body: []byte(c.sent), Sums: true}).Best
			if best != c.want {
				t.Errorf("%d, want %d", best, c.want)
			}
		})
	}
}

// Of large documents, those that no client has in hand are compared only as long as there is room. The others need no digest, which takes
// longer to make than all the rest of the choice.
func TestWhatIsNotComparedIsNotDigested(t *testing.T) {
	cs := make([]Candidate, 8)
	for i := range cs {
		cs[i] = spentAt(int64(i+1), oneName(2000, i))
	}
	cs[0].Spent, cs[7].Spent = false, false
	if got := Likeliest(cs, Sent{Body: []byte(strings.Replace(oneName(2000, 7), "7", "9", 1))}); got.Best != 7 {
		t.Errorf("%+v, want the newest", got)
	}
	for i := range cs {
		if want := i == 0 || i > 4; (cs[i].Digest != nil) != want {
			t.Errorf("candidate %d: digested %v, want %v", i, cs[i].Digest != nil, want)
		}
	}
}

// What revisions share isn't compared. So of large documents, too, a candidate that no client has in hand may be an old one.
func TestOldCandidatesOfLargeDocumentsAreCompared(t *testing.T) {
	document := func(revision int, note string) string {
		return strings.Replace(oneName(2000, 7), "{", fmt.Sprintf(`{"notes":["%s","of revision %d"],`, note, revision), 1)
	}
	cs := make([]Candidate, 40)
	for i := range cs {
		cs[i] = spentAt(int64(i+1), document(i, "apples"))
		cs[i].Digest = newDigest(cs[i].Source, naming{}, newestOf(cs[:i]))
	}
	cs[39].Spent = false
	if got := Likeliest(cs, Sent{Body: []byte(document(3, "bread"))}); got.Best != 3 {
		t.Errorf("%+v, want the fourth", got)
	}
}

// A candidate whose content isn't known may be the base, however many values were compared before it.
func TestWhatIsNotKnownIsAmbiguousAlsoWhereNothingIsCompared(t *testing.T) {
	cs := []Candidate{spentAt(1, "")}
	for i := range 8 {
		cs = append(cs, heldAt(int64(i+2), oneName(2000, i)))
	}
	if got := Likeliest(cs, Sent{Body: []byte(strings.Replace(oneName(2000, 7), "7", "9", 1))}); got.Best != 8 || !got.Ambiguous {
		t.Errorf("%+v, want the newest, and ambiguous", got)
	}
}

func TestAmbiguous(t *testing.T) {
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       bool
	}{
		"one candidate":           {[]Candidate{heldAt(1, `{"a":1}`)}, `{"a":2}`, false},
		"the same change of both": {[]Candidate{heldAt(1, `{"a":1}`), heldAt(2, `{"a":1}`)}, `{"a":2}`, false},
		"one that is as likely":   {[]Candidate{heldAt(1, `{"a":1}`), heldAt(2, `{"a":3}`)}, `{"a":2}`, true},
		"nobody has it in hand":   {[]Candidate{spentAt(1, `{"a":1}`), heldAt(2, ``)}, `{"a":2}`, true},
		"nearly beyond doubt": {
			[]Candidate{heldAt(1, `{"l":[]}`), heldAt(2, `{"l":["one long entry","and another long one"]}`)},
			`{"l":["one long entry","and another long one","x"]}`, true,
		},
		"far beyond doubt": {
			[]Candidate{heldAt(1, `{"l":[]}`), heldAt(2, `{"l":["one long entry","and another long one","and a third one"]}`)},
			`{"l":["one long entry","and another long one","and a third one","x"]}`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Likeliest(c.candidates, Sent{Body: []byte(c.sent)}).Ambiguous; got != c.want {
				t.Errorf("ambiguous %v", got)
			}
		})
	}
}

// Long lists of many candidates cost no more than a bound.
func TestFarCandidatesArentComparedToTheEnd(t *testing.T) {
	list := func(from int) string {
		var s strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&s, `"e%d",`, from+i)
		}
		return `{"l":[` + strings.TrimSuffix(s.String(), ",") + `]}`
	}
	var cs []Candidate
	for i := range 100 {
		cs = append(cs, heldAt(int64(i+1), list(i*20_000)))
	}
	if c := Likeliest(cs, Sent{Body: []byte(list(99*20_000 + 1))}); c.Best != 99 {
		t.Errorf("%d", c.Best)
	}
	w := new(weighing)
	w.weigh(cs, digesterOf([]byte(list(0))), false)
	if most := largeRoom + 20_010; w.compared > most {
		t.Errorf("compared %d values, want %d at most", w.compared, most)
	}
}

// A client of a log appends an entry, and drops the oldest: all that is too many, since others' entries have been merged in.
func TestWhatIsDroppedAtTheOtherEndCostsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       int
	}{
		"the oldest, as others do": {
			[]Candidate{heldAt(1, `{"log":["one","two","three","four"]}`), heldAt(2, `{"log":["two","three","four","apples"]}`)},
			`{"log":["two","three","four","bread"]}`, 0},
		"many of them": {
			[]Candidate{heldAt(1, `{"log":["one"]}`), heldAt(2, `{"log":["one","two","three","four","five","six","seven","eight"]}`)},
			`{"log":["six","seven","eight","nine"]}`, 1},
		"where the newest stands first": {
			[]Candidate{heldAt(1, `{"log":["four","three","two","one"]}`), heldAt(2, `{"log":["apples","four","three","two"]}`)},
			`{"log":["bread","four","three","two"]}`, 0},
		"entries of a few kinds": {
			[]Candidate{heldAt(1, `{"log":[{"n":1},{"n":2},{"n":1},{"n":1}]}`), heldAt(2, `{"log":[{"n":2},{"n":1},{"n":1},{"n":3}]}`)},
			`{"log":[{"n":2},{"n":1},{"n":1},{"n":2}]}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Likeliest(c.candidates, Sent{Body: []byte(c.sent)}); got.Best != c.want {
				t.Errorf("%d, want %d", got.Best, c.want)
			}
		})
	}
}

func elements(hashes ...uint64) *list {
	l := &list{n: len(hashes)}
	for from := 0; from < len(hashes); from += perPiece {
		p := &piece{}
		for _, h := range hashes[from:min(from+perPiece, len(hashes))] {
			p.elements = append(p.elements, newElement(h, weightOfFlag, false))
		}
		l.pieces = append(l.pieces, p)
	}
	return l
}

func TestSlides(t *testing.T) {
	for name, c := range map[string]struct {
		a, b *list
		want bool
	}{
		"one is appended":                   {elements(1, 2, 3, 4), elements(1, 2, 3, 4, 5), false},
		"one goes, and none comes":          {elements(1, 2, 3, 4), elements(2, 3, 4), false},
		"one goes, and one comes":           {elements(1, 2, 3, 4), elements(2, 3, 4, 5), true},
		"two go, and one comes":             {elements(1, 2, 3, 4, 5), elements(3, 4, 5, 6), true},
		"one goes, and two come":            {elements(1, 2, 3, 4), elements(2, 3, 4, 5, 6), true},
		"at the front":                      {elements(1, 2, 3, 4), elements(0, 1, 2, 3), true},
		"the last has another in its place": {elements(1, 2, 3, 4), elements(1, 2, 3, 5), false},
		"what is kept is in another order":  {elements(1, 2, 3, 4), elements(2, 4, 3, 5), false},
		"too few are kept":                  {elements(1, 2, 3), elements(2, 3, 4), false},
		"nothing":                           {elements(), elements(), false},
		"all of it is new":                  {elements(1, 2, 3, 4), elements(), false},
	} {
		if got := slides(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	many := make([]uint64, 1<<16)
	same := elements(many...)
	many[1], many[1<<15] = 1, 1
	other := elements(many...) // whoever looks at half of it each time looks a thousand million times
	if slides(same, other) {
		t.Error("what is no sliding window is one")
	}
}

// What a client sets in one entry of a list isn't what another has set in another entry.
func TestWhatAnEntrySaysIsOfThatEntry(t *testing.T) {
	for _, name := range []string{"id", "name", "sku"} {
		plan := func(dig, plant string) string {
			return `{"steps":[{"` + name + `":"dig","state":"` + dig + `"},{"` + name + `":"plant","state":"` + plant + `"}]}`
		}
		cs := []Candidate{heldAt(1, plan("is open", "is begun")), heldAt(2, plan("is begun", "is begun"))}
		if got := Likeliest(cs, Sent{Body: []byte(plan("is begun", "is open"))}); got.Best != 1 {
			t.Errorf("%s: %+v, want the newer one", name, got)
		}
	}
}

// A client that changes many entries of a list in place, and adds one, has seen the newest revision that holds the last one's changes.
func TestManyEntriesMayChangeInPlace(t *testing.T) {
	room := func(messages string, unread ...int) string {
		var members []string
		for i, n := range unread {
			members = append(members, fmt.Sprintf(`{"id":"u%d","unread":%d}`, i, n))
		}
		return `{"messages":[` + messages + `],"members":[` + strings.Join(members, ",") + `]}`
	}
	const first, second, third = `{"id":1,"text":"hi"}`, `,{"id":2,"text":"hello"}`, `,{"id":3,"text":"yes"}`
	cs := []Candidate{heldAt(1, room(first, 0, 1, 1, 1)), heldAt(2, room(first+second, 1, 0, 2, 2))}
	if got := Likeliest(cs, Sent{Body: []byte(room(first+second+third, 2, 1, 0, 3))}); got.Best != 1 {
		t.Errorf("%+v, want the newer one", got)
	}
}

// Where a list keeps its length, a client that sets one of its elements has left the others alone. Where elements move, or the list grows, a
// client has rather not seen what somebody else has put in.
func TestElementsOfAListThatKeepsItsLengthAreSetInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		candidates []Candidate
		sent       string
		want       int
	}{
		"set back in the newest": {
			[]Candidate{heldAt(1, `{"l":["free seat","free seat","by ada"],"n":1}`), heldAt(2, `{"l":["by bob","free seat","by ada"],"n":2}`)},
			`{"l":["by bob","by eve","by ada"],"n":3}`, 1},
		"set in an older one": {
			[]Candidate{heldAt(1, `{"l":["one is open","two is open"]}`), heldAt(2, `{"l":["one is done","two is open"]}`)},
			`{"l":["one is open","two is done"]}`, 0},
		"it grows": {
			[]Candidate{heldAt(1, `{"l":["apples","pears"]}`), heldAt(2, `{"l":["apples","pears","plums"]}`)}, `{"l":["apples","pears","bread"]}`, 0},
		"it is sorted anew": {
			[]Candidate{heldAt(1, `{"l":["dan 4","cat 3","bob 2"]}`), heldAt(2, `{"l":["eve 5","dan 4","cat 3"]}`)},
			`{"l":["fay 6","dan 4","cat 3"]}`, 0},
	} {
		if got := Likeliest(c.candidates, Sent{Body: []byte(c.sent)}); got.Best != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}

// Entries of one host are at one place, and so are the lists in them.
func TestEntriesMayHaveOneName(t *testing.T) {
	for k := range 20 { // in how many orders the lists are, depends on the names of others
		log := fmt.Sprintf(`{"log%d":[1],"l":[`, k)
		document := func(in ...string) []byte {
			return []byte(log + `{"host":1,"in":[` + strings.Join(in, `]},{"host":1,"in":[`) + `]}]}`)
		}
		cs := []Candidate{
			heldAt(1, string(document(`1,2,3`, `1,2,3,4`, `1,2`))), heldAt(2, string(document(`1,2,3`, `1,2,5,4`, `1,2`))),
			heldAt(3, string(document(`1,2,6`, `1,2,5,4`, `1,2`))),
		}
		if got := Likeliest(cs, Sent{Body: document(`1,2,6`, `1,2,5,4`, `1,7`)}); got.Best != 2 {
			t.Errorf("%+v, want the newest", got)
		}
	}
}

// Who reads a document and sends what it has sent before, which others' changes were merged with, insists on it.
func TestWhoSendsTheSameAgainInsistsOnIt(t *testing.T) {
	view := Candidate{Revision: at(2, `{"state":"it is open","by":"nobody","seen":1}`), Spent: true, View: true}
	cs := []Candidate{spentAt(1, `{"state":"it is done","by":"ada","seen":1}`), view, heldAt(2, `{"state":"it is done","by":"ada","seen":2}`)}
	if got := Likeliest(cs, Sent{Body: view.Source}); got.Best == 1 {
		t.Errorf("%+v, want the one in hand", got)
	}
}

// A time that is set anew doesn't make a save a change. So a client that works alone has rather set a state back than saved an older one.
func TestATimeAloneIsNoChange(t *testing.T) {
	for _, times := range [][3]string{
		{`"2026-11-27T09:00:00Z"`, `"2026-11-27T09:01:00Z"`, `"2026-11-27T09:02:00Z"`}, {`1795770000`, `1795770060`, `1795770120`},
		{`1795770000000`, `1795770060000`, `1795770120000`},
	} {
		ticket := func(state, by, at string) string { return `{"state":"` + state + `","by":` + by + `,"at":` + at + `}` }
		cs := []Candidate{heldAt(1, ticket("resolved", `"ada"`, times[0])), heldAt(2, ticket("open", "null", times[1]))}
		sent := Sent{Body: []byte(ticket("resolved", `"ada"`, times[2])), Quiet: true}
		if got := Likeliest(cs, sent); got.Best != 1 {
			t.Errorf("%s: %+v, want the newest", times[2], got)
		}
	}
}

// A candidate that is too far to be the base still shows what others have written.
func TestWhatAFarCandidateHasCounts(t *testing.T) {
	var many []string
	for i := range 3 * enough {
		many = append(many, fmt.Sprintf(`"e%d"`, i))
	}
	cs := []Candidate{heldAt(1, `{"l":["apples",`+strings.Join(many, ",")+`]}`), heldAt(2, `{"l":[]}`)}
	w := new(weighing)
	if v := w.weigh(cs, digesterOf([]byte(`{"l":["apples"]}`)), false); !v[0].far || v[1].price == 0 {
		t.Errorf("%+v", v)
	}
}

// However many words the entries have that are dropped, their candidate isn't too far to be compared.
func TestLongEntriesAreDropped(t *testing.T) {
	entry := func(n int) string {
		return fmt.Sprintf(`"entry %d has a good many words, of which each is in a pair %d"`, n, n)
	}
	log := func(from, to int, more string) string {
		var all []string
		for n := from; n < to; n++ {
			all = append(all, entry(n))
		}
		return `{"log":[` + strings.Join(append(all, more), ",") + `]}`
	}
	cs := []Candidate{heldAt(1, log(0, 40, entry(40))), heldAt(2, log(0, 41, `"apples"`)), heldAt(3, log(30, 41, `"pears"`))}
	if got := Likeliest(cs, Sent{Body: []byte(log(30, 41, `"bread"`))}); got.Best != 0 {
		t.Errorf("%+v, want the first", got)
	}
}

// TestTheExampleOfThePageHasThesePrices: docs/inference.md works it out, change by change.
func TestTheExampleOfThePageHasThesePrices(t *testing.T) {
	cs := []Candidate{{Revision: at(1, `{"items":[],"count":0}`)}, {Revision: at(2, `{"items":["apples"],"count":1}`)}}
	sent := []byte(`{"items":["bread"],"count":1}`)
	mine := digesters.Get().(*digester)
	defer mine.release()
	mine.read(sent, naming{})
	w := weighings.Get().(*weighing)
	defer w.release()
	if v := w.weigh(cs, mine, false); v[0].price != 1 || v[1].price != 15 {
		t.Errorf("prices %d and %d", v[0].price, v[1].price)
	}
	if c := Likeliest(cs, Sent{Body: sent}); c.Best != 0 || !c.Ambiguous {
		t.Errorf("%+v", c)
	}
}

// Where the rule adds nothing up, numbers are set anew, and how far that moves them says nothing.
func TestWhatWasMeasuredIsNearToWhatWasMeasuredJustBefore(t *testing.T) {
	cs := []Candidate{heldAt(1, `{"l":[],"t":20.5}`), heldAt(2, `{"l":["looked at it"],"t":25.001}`), heldAt(3, `{"l":["looked at it","all is well"],"t":25.004}`)}
	if best := Likeliest(cs, Sent{Body: []byte(`{"l":["replaced it"],"t":25.003}`)}).Best; best != 0 {
		t.Errorf("%d", best)
	}
}

// Clients take the time of a change from their clocks, and two of them often write in the same millisecond. But no clock goes back to the
// time of an older revision: the client has read that revision, and left the time alone. And two clients don't share a time that is finer.
func TestTwoClientsMayWriteInTheSameMillisecond(t *testing.T) {
	const before, now = `"2026-01-02T03:04:05.006Z"`, `"2026-01-02T03:04:05.012Z"`
	const fine, zone, tenth = `"2026-01-02T03:04:05.012345Z"`, `"2026-01-02T03:04:05+00:00"`, `"2026-01-02T03:04:05.6+01:00"`
	for name, c := range map[string]struct {
		older, newer, sent string
		want               int
	}{
		"the newer one's time": {
			`{"state":"open","owner":null,"at":` + before + `}`, `{"state":"open","owner":"ann","at":` + now + `}`,
			`{"state":"done","owner":null,"at":` + now + `}`, 0},
		"the newer one's time, finer than a millisecond": {
			`{"state":"open","owner":null,"at":` + before + `}`, `{"state":"open","owner":"ann","at":` + fine + `}`,
			`{"state":"done","owner":null,"at":` + fine + `}`, 1},
		"the newer one's time, with a zone": {
			`{"state":"open","owner":null,"at":` + before + `}`, `{"state":"open","owner":"ann","at":` + zone + `}`,
			`{"state":"done","owner":null,"at":` + zone + `}`, 0},
		"the newer one's time, with a tenth of a second and a zone": {
			`{"state":"open","owner":null,"at":` + before + `}`, `{"state":"open","owner":"ann","at":` + tenth + `}`,
			`{"state":"done","owner":null,"at":` + tenth + `}`, 0},
		"the older one's time": {
			`{"a":false,"b":false,"at":` + before + `}`, `{"a":true,"b":true,"at":` + now + `}`, `{"a":true,"b":true,"c":1,"at":` + before + `}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Likeliest([]Candidate{heldAt(1, c.older), heldAt(2, c.newer)}, Sent{Body: []byte(c.sent)}).Best; got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
