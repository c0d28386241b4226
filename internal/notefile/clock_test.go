//go:build unix

package notefile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/note"
)

// system is the clocks of a machine.
type system struct{ wall, since, start time.Duration }

func (s *system) clocks() clocks {
	return clocks{
		wall:  func() int64 { return int64(s.wall) },
		since: func() (int64, uint64) { return int64(s.since), uint64(s.start) },
	}
}

// passes is the time that goes by.
func (s *system) passes(d time.Duration) { s.wall, s.since = s.wall+d, s.since+d }

// run is a process, which counts its own time.
type run struct {
	*system
	file *Book
	book *note.Book
	now  time.Duration
}

func (s *system) run(t *testing.T, path string, maxAge time.Duration) *run {
	t.Helper()
	r := &run{system: s, file: opened(t, path, "")}
	r.file.clocks = s.clocks()
	r.book = note.NewBook(r.file, maxAge)
	return r
}

func (r *run) passes(d time.Duration) { r.system.passes(d); r.now += d }

func (r *run) notes(key *note.Key) {
	r.book.Put(r.book.ID(key), note.Note{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, At: r.book.Started() + int64(r.now), Clients: 1})
}

// A client reads, optimist is killed and started, the client writes. Meanwhile the clocks are set.
func TestNotesOutliveAClockThatIsSet(t *testing.T) {
	const (
		maxAge = 5 * time.Minute
		later  = 10 * time.Minute
	)
	set := func(by time.Duration) func(*system) { return func(s *system) { s.wall += by } }
	sleep := func(s *system) { s.passes(later) } // the process doesn't count it
	restart := func(s *system) { s.since, s.start = time.Second, s.start+1 }
	unknown := func(s *system) { s.start = 0 }
	nothing := func(*system) {}
	for name, c := range map[string]struct {
		first, second func(*system) // in the first process before its note, and between the processes
		old           bool          // the note is too old for the second
	}{
		"nothing":                       {first: nothing, second: nothing},
		"back between the two":          {first: nothing, second: set(-2 * time.Second)},
		"far back between the two":      {first: nothing, second: set(-time.Hour)},
		"forward between the two":       {first: nothing, second: set(time.Hour)},
		"forward before":                {first: set(later), second: nothing},
		"back before":                   {first: set(-later), second: nothing},
		"asleep before":                 {first: sleep, second: nothing},
		"forward, the system starts":    {first: set(later), second: restart},
		"back, the system starts":       {first: nothing, second: func(s *system) { restart(s); s.wall -= later }},
		"back, no start is known":       {first: unknown, second: set(-later)},
		"forward, no start is known":    {first: func(s *system) { unknown(s); s.wall += later }, second: nothing},
		"much later":                    {first: nothing, second: sleep, old: true},
		"much later, the system starts": {first: nothing, second: func(s *system) { s.passes(later); restart(s) }, old: true},
	} {
		t.Run(name, func(t *testing.T) {
			path, key, own := file(t), &note.Key{Named: true}, &note.Key{}
			s := &system{wall: 1000 * time.Hour, since: time.Hour, start: 1}
			one := s.run(t, path, maxAge)
			one.passes(time.Second)
			c.first(s)
			one.passes(time.Second)
			one.notes(key)
			s.passes(time.Second)
			one.file.Close()
			c.second(s)
			two := s.run(t, path, maxAge)
			if got := two.book.Recall(two.book.ID(key), int64(two.now)); (got == nil) != c.old {
				t.Errorf("it is recalled: %v", got)
			}
			if two.notes(own); two.book.Recall(two.book.ID(own), int64(two.now)) != nil {
				t.Error("a process recalls its own notes")
			}
			two.file.Close()
			three := s.run(t, path, maxAge)
			if three.book.Recall(three.book.ID(own), int64(three.now)) == nil {
				t.Error("the next process doesn't recall the notes of the second")
			}
		})
	}
}

// The process is killed while it notes, long after its last note. The next one begins at once, and recalls what was noted.
func TestNotesOutliveAKillWhileOneIsMade(t *testing.T) {
	const maxAge = 5 * time.Minute
	for name, set := range map[string]time.Duration{"nothing": 0, "the clock is set back": -time.Hour, "the clock is set forward": time.Hour} {
		for _, stored := range [][]int{{}, {wallAt}, {lastAt}, {wallAt, lastAt}} {
			t.Run(fmt.Sprint(name, stored), func(t *testing.T) {
				path, key, s := file(t), &note.Key{Named: true}, &system{wall: 1000 * time.Hour}
				one := s.run(t, path, maxAge)
				one.notes(&note.Key{})
				one.passes(time.Hour)
				s.wall += set
				one.notes(key)
				one.passes(4 * time.Minute)
				one.killed(stored)
				s.passes(time.Second)
				two := s.run(t, path, maxAge)
				if two.book.Recall(two.book.ID(key), int64(two.now)) == nil {
					t.Error("the note isn't recalled")
				}
			})
		}
	}
}

// killed has a process end while it notes, when it has stored these words of the clock.
func (r *run) killed(stored []int) {
	before := map[int]uint64{}
	for _, at := range []int{lastAt, wallAt} {
		before[at] = r.file.words[at].Load()
	}
	r.notes(&note.Key{})
	for at, word := range before {
		if !slices.Contains(stored, at) {
			r.file.words[at].Store(word)
		}
	}
	r.file.Close()
}

// An index is dropped, the clock is set back, the process ends: what the next one notes is from after the drop.
func TestWhatIsNotedAfterADropCountsIfTheClockIsSetBack(t *testing.T) {
	path, key, s := file(t), &note.Key{}, &system{wall: 1000 * time.Hour}
	one := s.run(t, path, time.Minute)
	one.passes(time.Second)
	one.book.DropIndices(int64(one.now))
	one.file.Close()
	s.wall -= time.Hour
	two := s.run(t, path, time.Minute)
	two.notes(key)
	two.file.Close()
	if three := s.run(t, path, time.Minute); three.book.Recall(three.book.ID(key), 0) == nil {
		t.Error("the note is none")
	}
}
