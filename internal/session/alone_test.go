package session

import "testing"

// Client A writes. Client B reads that, and writes. Client A saves once more from its own copy, which nobody has read or reserved.
func TestWhoSavesFromMemoryIsToldFromTheClientThatWroteSince(t *testing.T) {
	const (
		as   = `{"title":"the quick brown fox","lines":[{"id":"x1","text":"written by anna"}]}`
		bs   = `{"title":"the quick brown fox","lines":[{"id":"x1","text":"written by anna"},{"id":"b1","text":"written by bert"}]}`
		more = `{"title":"the quick brown fox","lines":[{"id":"x1","text":"written by anna"},{"id":"a1","text":"once more by anna"}]}`
	)
	for name, read := range map[string]func(s *Store){
		"nobody has read since": func(*Store) {},
		"client B writes twice": func(s *Store) {
			s.Read(pool, ref, rev(7, bs), s.Epoch())
			commit(take(t, s, pool, bs+" "), 8, bs+" ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ranked(t)
			s.Read(pool, ref, rev(5, `{}`), s.Epoch())
			commit(take(t, s, pool, as), 6, as)
			s.Read(pool, ref, rev(6, as), s.Epoch())
			commit(take(t, s, pool, bs), 7, bs)
			read(s)
			b := take(t, s, pool, more)
			want(t, b, KindView, 6)
			b.Release()
		})
	}
}

// A client that is alone goes on from what it wrote last, and sets its document back.
func TestAClientAloneIsNotTakenForTwo(t *testing.T) {
	text := func(words string) string { return `{"text":"the quick brown fox jumps over the lazy ` + words + `"}` }
	s := ranked(t)
	was := "dog"
	for n, animal := range []string{"cat", "cow", "hen"} {
		seq := int64(5 + n)
		s.Read(pool, ref, rev(seq, text(was)), s.Epoch())
		b := take(t, s, pool, text(animal))
		if want(t, b, KindRead, seq); b.Ambiguous {
			t.Error("a client that reads before it writes has a base that is certain")
		}
		commit(b, seq+1, text(animal))
		was = animal
	}
	for _, own := range []string{"hen and a chick", "cow", "hen"} {
		b := take(t, s, pool, text(own))
		want(t, b, KindView, 8)
		b.Release()
	}
}

// A client that is alone takes out what it has put in. From what it wrote before that it would have done less, but it has read the document
// since.
func TestAClientAloneTakesOutWhatItHasPutIn(t *testing.T) {
	s := ranked(t)
	versions := []string{`{"lines":[{"id":"A"}],"total":1}`, `{"lines":[{"id":"A"},{"id":"B"}],"total":2}`,
		`{"lines":[{"id":"A"}],"total":1,"coupon":"X"}`}
	s.Read(pool, ref, rev(5, `{}`), s.Epoch())
	commit(take(t, s, pool, versions[0]), 6, versions[0])
	for n, sent := range versions[1:] {
		seq := int64(6 + n)
		s.Read(pool, ref, rev(seq, versions[n]), s.Epoch())
		b := take(t, s, pool, sent)
		if want(t, b, KindRead, seq); b.Ambiguous {
			t.Error("its base is certain")
		}
		commit(b, seq+1, sent)
	}
}
