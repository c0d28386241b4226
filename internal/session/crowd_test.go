package session

import (
	"fmt"
	"testing"

	"optimist/internal/viewcache"
)

// Two people edit a form with checkboxes. Each sees the stored document as soon as it has saved, as after a redirect, and goes on from there. They
// take turns, so that no write comes while another is under way, and everything written was read. The first few bases may be wrong.
func TestTwoPeopleWhoReloadAreNotOne(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	type person struct{ a, b int } // what it has in hand
	body := func(p person) string { return fmt.Sprintf(`{"user":"ada","a":%v,"b":%v}`, p.a%2 == 1, p.b%2 == 1) }
	version, stored := int64(5), person{}
	read := func() person {
		s.Read(pool, ref, rev(version, body(stored)), s.Epoch())
		return stored
	}
	ann, bob := read(), read()
	wrong := 0
	for n := range 60 {
		who, change := &ann, func(p *person) { p.a++ }
		if n%2 == 1 {
			who, change = &bob, func(p *person) { p.b++ }
		}
		base := body(*who)
		sent := *who
		change(&sent)
		b := take(t, s, pool, body(sent))
		if string(b.View) != base {
			wrong++
			if n >= 8 || !b.Ambiguous {
				t.Errorf("write %d: sent %s, made from %s; its base is %s, ambiguous %v", n, body(sent), base, b.View, b.Ambiguous)
			}
		}
		change(&stored) // what is stored is right whatever the base was
		version++
		b.Commit(Ack{Stored: rev(version, body(stored)), Sent: []byte(body(sent))})
		*who = read()
	}
	t.Logf("%d of 60 bases are wrong", wrong)
}

// A client that is alone sets a list back to what somebody has looked at. The choice is right: the base is what it has read last. So the choice
// doesn't show that several clients are at work.
func TestALoneClientThatSetsAListBackIsNoCrowd(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	texts := [2]string{`{"on_call":[]}`, `{"on_call":["ada lovelace","grace hopper"]}`}
	version := int64(5)
	read := func(n int) { s.Read(pool, ref, rev(version, texts[n%2]), s.Epoch()) }
	crowds, wrong := 0, 0
	for n := range 60 {
		read(n)
		if n%16 == 0 {
			read(n) // somebody looks
		}
		b := take(t, s, pool, texts[(n+1)%2])
		if string(b.View) != texts[n%2] {
			wrong++
		}
		version++
		b.Commit(Ack{Stored: rev(version, texts[(n+1)%2]), Sent: []byte(texts[(n+1)%2])})
		sh := s.shard(viewcache.Key{Session: pool, Ref: ref})
		sh.mu.Lock()
		if !sh.Peek(viewcache.KeyOf(pool, ref)).Crowd.IsQuiet() {
			crowds++
		}
		sh.mu.Unlock()
	}
	if crowds > 0 || wrong > 0 {
		t.Errorf("%d wrong bases; after %d of 60 writes several clients are taken to be at work", wrong, crowds)
	}
}
