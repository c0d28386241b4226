package inference

import (
	"reflect"
	"testing"
	"time"
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
	for _, shape := range Shapes() {
		got := run(t, Config{Shape: shape, Workers: 8, Rounds: 15, Looks: 0.3, Unchanged: 0.1, Traces: true})
		if got.Changes != 8*15 || got.Wrong+got.Lost+got.Invented+got.Refused+len(got.Errors) != 0 {
			t.Errorf("%s: %+v", shape, got)
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
