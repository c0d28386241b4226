package inference

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"optimist/internal/rank"
	"optimist/rewrite/merge"
)

func run(t *testing.T, c Config) *Tally {
	t.Helper()
	if c.Think == 0 {
		c.Think, c.Pause = 5*time.Millisecond, 5*time.Millisecond
	}
	got, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What the simulator calls wrong is wrong by its own doing, unless nothing is where each read is known to belong to its write.
func TestWithTracesEachShapeIsExact(t *testing.T) {
	t.Parallel()
	for _, shape := range slices.Concat(Shapes(), VagueShapes()) {
		got := run(t, Config{Shape: shape, Workers: 8, Rounds: 15, Looks: 0.3, Unchanged: 0.1, Slow: 0.1, Kept: 0.3, Traces: WorkTraces})
		if got.Changes != 8*15 || got.Wrong+got.Lost+got.Invented+got.Refused+len(got.Errors) != 0 {
			t.Errorf("%s: %+v", shape, got)
		}
	}
}

// Set-ups that begin a trace with each request have what they would have without.
func TestATraceForEachRequestIsAsNone(t *testing.T) {
	t.Parallel()
	for _, shape := range Shapes() {
		c := Config{Shape: shape, Workers: 8, Rounds: 15, Looks: 0.3, Unchanged: 0.1, Slow: 0.05, Kept: 0.3}
		want := run(t, c)
		c.Traces = CallTraces
		if got := run(t, c); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, without traces %+v", shape, got, want)
		}
	}
}

// Four workers in one trace are inferred among themselves, and not among all.
func TestASharedTraceIsBetterThanNone(t *testing.T) {
	t.Parallel()
	var none, shared Tally
	for _, shape := range slices.Concat(Shapes(), VagueShapes()) {
		c := Config{Shape: shape, Workers: 16, Rounds: 15, Looks: 0.1}
		none.Add(run(t, c))
		c.Traces = TeamTraces
		shared.Add(run(t, c))
	}
	if shared.Changes < none.Changes || shared.Wrong >= none.Wrong || shared.Refused+len(shared.Errors) > 0 {
		t.Errorf("%+v, without traces %+v", shared, none)
	}
}

// Bounds that the choice by distance alone misses by far: it is wrong with one change of seven or more.
func TestTheBaseIsFoundByWhatOthersWrote(t *testing.T) {
	t.Parallel()
	understood := slices.DeleteFunc(slices.Concat(Shapes(), VagueShapes()), misread)
	for name, c := range map[string]struct {
		Config
		shapes []string
		wrong  int // of 1000 changes
	}{
		"one client, which also only looks": {Config{Workers: 1, Rounds: 200, Looks: 0.1}, understood, 20},
		"one client sets a state back":      {Config{Workers: 1, Rounds: 200, Watchers: 1, Watch: 5 * time.Millisecond}, []string{"state", "members"}, 10},
		"one client goes back and forth": {Config{Workers: 1, Rounds: 200, Watchers: 1, Watch: 5 * time.Millisecond},
			[]string{"approval", "reservations", "kanban", "likes", "retracted"}, 90},
		"lists that keep their entries": {Config{}, []string{"approval", "jobs", "members"}, 20},
		"one client, and another looks": {Config{Workers: 1, Rounds: 200, Watchers: 1, Watch: 5 * time.Millisecond}, append(Shapes(), "seats"), 20},
		"one client, and another program looks": {Config{Workers: 1, Rounds: 200, Watchers: 1, Watch: 5 * time.Millisecond, Programs: Viewers},
			append(Shapes(), "jobs", "holders", "reservations", "approval", "health"), 20},
		"numbers that tell nothing":        {Config{Rounds: 2}, []string{"dated", "metered", "payments"}, 5},
		"nobody only looks":                {Config{}, Shapes(), 20},
		"the engine is slow":               {Config{Trip: 20 * time.Millisecond}, Shapes(), 5},
		"each write goes by itself":        {Config{Alone: true}, Shapes(), 20},
		"every other read is a look":       {Config{Looks: 0.5}, Shapes(), 25},
		"views are saved again":            {Config{Kept: 0.2}, Shapes(), 25},
		"clients give up and repeat":       {Config{Slow: 0.05}, Shapes(), 25},
		"saves that change nothing":        {Config{Unchanged: 0.1}, Shapes(), 75},
		"traces mislead":                   {Config{Forms: true, Traces: WorkTraces}, []string{"fields", "ticket", "profile", "wiki"}, 60},
		"values are few and often equal":   {Config{}, []string{"readings", "chat", "thread", "switches"}, 30},
		"only the newest are kept":         {Config{Looks: 0.1}, []string{"lines", "window"}, 5},
		"a number tells the revision":      {Config{}, []string{"auction", "article", "statistics"}, 100},
		"rows of a table, and slots":       {Config{}, []string{"grid", "calendar"}, 40},
		"one client's tables and slots":    {Config{Workers: 1, Rounds: 200, Looks: 0.1}, []string{"grid", "calendar"}, 40},
		"most entries of a list are equal": {Config{}, []string{"seats"}, 120},
		"one client writes parts":          {Config{Workers: 1, Rounds: 200, Parts: true}, Shapes(), 3},
		"parts hold what has changed":      {Config{Parts: true}, []string{"ticket", "profile", "settings", "wide"}, 15},
		"parts hold more than that":        {Config{Parts: true, Dialogs: true}, []string{"fields", "profile", "settings", "wide"}, 10},
		"entries of lists have names":      {Config{}, []string{"tasks", "invoice", "columns"}, 90},
		"a rule names what entries have":   {Config{}, []string{"quantities"}, 30},
		"each document changes seldom":     {Config{Workers: 16, Rounds: 2, Documents: 20, Looks: 0.5}, Shapes(), 5},
		"two change each document":         {Config{Workers: 2, Rounds: 10, Documents: 32, Think: 2 * time.Second, Pause: time.Millisecond}, Shapes(), 7},
		"entries of lists are counted in":  {Config{}, []string{"votes"}, 150},
	} {
		var all Tally
		for _, shape := range c.shapes {
			c := c.Config
			if c.Shape = shape; c.Workers == 0 {
				c.Workers, c.Rounds = 16, 15
			}
			all.Add(run(t, c))
		}
		if 1000*all.Wrong > c.wrong*all.Changes || all.Refused > 0 || 1000*all.Silent > c.wrong/10*all.Changes || len(all.Errors) > 0 {
			t.Errorf("%s: %d of %d wrong, %d of them silent, %d refused, %v", name, all.Wrong, all.Changes, all.Silent, all.Refused, all.Errors)
		}
		if most := 3 * all.Changes; all.Lost+all.Invented > most {
			t.Errorf("%s: %d lost and %d invented of %d: it ran away", name, all.Lost, all.Invented, all.Changes)
		}
	}
}

// misread reports whether a client that works alone at such documents is often taken for one of several, if somebody looks: its changes
// return to what was before, or are measured values (docs/inference.md).
func misread(shape string) bool {
	return slices.Contains([]string{"jobs", "health"}, shape)
}

// A client that is alone, and looks at nothing but what it changes, is always understood.
func TestALoneClientIsExact(t *testing.T) {
	t.Parallel()
	for _, shape := range slices.Concat(Shapes(), VagueShapes()) {
		for _, c := range []Config{{}, {Unchanged: 0.1}} {
			c.Shape, c.Workers, c.Rounds = shape, 1, 100
			if got := run(t, c); got.Changes != 100 || got.Wrong+got.Refused+len(got.Errors) != 0 {
				t.Errorf("%s, %+v: %+v", shape, c, got)
			}
		}
	}
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	c := Config{Shape: "cart", Workers: 8, Rounds: 10, Looks: 0.3, Unchanged: 0.1, Slow: 0.1, Kept: 0.3, Seed: 7}
	if a, b := run(t, c), run(t, c); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
}

// A client that gives up waiting repeats the same bytes: all of them have to end.
func TestWritesThatAreGivenUpEnd(t *testing.T) {
	if got := run(t, Config{Shape: "profile", Workers: 8, Rounds: 20, Slow: 0.5}); got.Changes != 8*20 {
		t.Errorf("%+v", got)
	}
}

// The judge doesn't believe the merge alone: a cart has every entry that was put in, and their number.
func TestTheJudgeSeesWhatIsMissing(t *testing.T) {
	x := &Tally{units: map[string]float64{"count": 1}}
	for _, c := range []struct {
		want, got      string
		lost, invented int
	}{
		{`{"items":[1,2],"count":2}`, `{"count":2,"items":[2,1]}`, 0, 0},
		{`{"items":[1,2],"count":2}`, `{"items":[2],"count":1}`, 1, 0},
		{`{"items":[1,2],"count":2}`, `{"items":[1,2,2],"count":3}`, 0, 1},
		{`{"items":[1,2],"count":2}`, `{"items":[1,3],"count":2}`, 1, 0},
		{`{"a":1,"b":2}`, `{"a":1}`, 1, 0},
		{`{"a":1}`, `{"a":1,"b":2}`, 0, 1},
		{`{"count":2}`, `{"count":9}`, 0, 7},
	} {
		d := comparison{units: x.units}
		d.value("", decode([]byte(c.want)), decode([]byte(c.got)), decode([]byte(`{"count":0}`)))
		if lost, invented := d.sum(); lost != c.lost || invented != c.invented {
			t.Errorf("%s, %s: %d lost and %d invented, want %d and %d", c.want, c.got, lost, invented, c.lost, c.invented)
		}
	}
}

// If each read is followed by a write, hardly anything that a wrong base does is there at the end. With the oldest candidate as the base it
// would be.
func TestLittleIsLostForGood(t *testing.T) {
	t.Parallel()
	lasting := func(ranking func([]rank.Candidate, rank.Sent) rank.Choice) (of1000 int) {
		var all Tally
		for _, shape := range Shapes() {
			for seed := range uint64(2) {
				all.Add(run(t, Config{Shape: shape, Workers: 16, Rounds: 20, Seed: seed, Rank: ranking}))
			}
		}
		t.Logf("%d of %d changes are lost or invented at the end", all.Lasting, all.Changes)
		return 1000 * all.Lasting / all.Changes
	}
	if n := lasting(nil); n > 2 {
		t.Errorf("of 1000 changes %d are lost or invented", n)
	}
	oldest := func([]rank.Candidate, rank.Sent) rank.Choice { return rank.Choice{Ambiguous: true} }
	if n := lasting(oldest); n < 20 {
		t.Errorf("with the oldest candidate only %d of 1000", n)
	}
}

// Two clients are counted from each other's read. The second write makes good what the first one lost.
func TestWhatALaterWriteMakesGoodDoesNotLast(t *testing.T) {
	merger, err := merge.New(merge.Sent, sum("/count"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(view, sent, before, after string) *verdict {
		return &verdict{merger, &truth{view: []byte(view), sent: []byte(sent)}, []byte(before), []byte(after), true}
	}
	older, newer := `{"count":0,"tags":[]}`, `{"count":1,"tags":["a"]}`
	first, second := `{"count":5,"tags":["b"]}`, `{"count":2,"tags":["a","c"]}`
	for _, c := range []struct {
		what           string
		after          [2]string
		lost, invented int
		lasting        int
	}{
		{"right bases", [2]string{`{"count":6,"tags":["a","b"]}`, `{"count":7,"tags":["a","b","c"]}`}, 0, 0, 0},
		{"each other's", [2]string{`{"count":5,"tags":["b"]}`, `{"count":7,"tags":["b","a","c"]}`}, 1, 1, 0},
		{"the first one is wrong", [2]string{`{"count":5,"tags":["b"]}`, `{"count":6,"tags":["b","c"]}`}, 1, 0, 1},
	} {
		x := &Tally{units: map[string]float64{"count": 1}, ideal: []byte(newer)}
		x.judge(write(older, first, newer, c.after[0]))
		x.judge(write(newer, second, c.after[0], c.after[1]))
		x.end([]byte(c.after[1]))
		if x.Lost != c.lost || x.Invented != c.invented || x.Lasting != c.lasting || len(x.Errors) > 0 {
			t.Errorf("%s: %d lost, %d invented, %d lasting, want %d, %d and %d, %v", c.what, x.Lost, x.Invented, x.Lasting, c.lost, c.invented,
				c.lasting, x.Errors)
		}
	}
}
