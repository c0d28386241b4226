package inference

import (
	"math"
	"testing"
	"time"

	"optimist/internal/notetest"
)

// restarts end the process in order now and then, as a deployment does, and start the next one. It has the notes of the one before.
func (x *proxy) restarts(c *Config) func(p *process) {
	return func(p *process) {
		for {
			p.sleep(x.w.about(300 * time.Millisecond))
			if x.working == 0 {
				return
			}
			for x.draining = true; x.underway > 0; {
				p.sleep(time.Millisecond)
			}
			x.restart(c)
			x.draining = false
			for _, q := range x.outside {
				x.w.wake(q)
			}
			x.outside = nil
		}
	}
}

// runWithStarts has clients work on a document while processes with notes follow each other.
func runWithStarts(t *testing.T, c Config) *Tally {
	t.Helper()
	c.notes = notetest.New(0)
	x, err := begin(&c)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := shapeOf(c.Shape)
	g := &growth{units: s.units, put: map[string]float64{}}
	g.size("", "", decode(x.engine.Source), func(path string, size float64) { g.put[path] = math.Abs(size) })
	x.tally.sent = g.sent
	x.w.start(x.restarts(&c))
	x.w.run()
	if worst := g.over(x.engine.Source); worst != "" {
		t.Errorf("%s, seed %d, %d workers: %s", c.Shape, c.Seed, c.Workers, worst)
	}
	return x.tally
}

// TestNotesOfTheProcessBeforeMisleadNobody has clients hold a document across a start, and read, change and write it after that. The
// process has notes of what was read before. It finds nearly as many bases as it would without the start, and says where it has guessed.
func TestNotesOfTheProcessBeforeMisleadNobody(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"counter", "list", "fields", "cart", "ticket", "queue", "tags", "settings"} {
		all := &Tally{}
		for _, workers := range []int{2, 8} {
			for seed := range uint64(4) {
				all.Add(runWithStarts(t, Config{
					Shape: shape, Workers: workers, Rounds: 60, Think: 5 * time.Millisecond, Pause: 5 * time.Millisecond, Seed: seed,
				}))
			}
		}
		if all.Wrong*25 > all.Changes || all.Silent > 0 || len(all.Errors) > 0 {
			t.Errorf("%s: of %d changes %d wrong, %d of them silent; %d lost, %d invented; %v", shape, all.Changes, all.Wrong, all.Silent, all.Lost,
				all.Invented, all.Errors)
		}
	}
}
