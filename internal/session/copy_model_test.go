package session

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"optimist/internal/doc"
)

// heldCopy is what a model knows of a copy: what its holder has in hand.
type heldCopy struct {
	copy   Copy
	saw    string // the revision as it was served, or what was sent from it last
	unsure bool   // a write from it has no known outcome
}

// TestACopyIsCountedFromWhatItsHolderHasOrFromNothing lets many that can't be told apart read, write from their copies in any
// order, write without them, fail, and wait too long; indices are made anew and memory is short. Whatever happens, a change is
// counted from what its holder has, under numbers that were that revision's; or the body isn't known, which is a guard and no
// more.
func TestACopyIsCountedFromWhatItsHolderHasOrFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{t: time.Unix(1, 0)}
		memory := rapid.SampledFrom([]int64{64 << 10, 4 << 20}).Draw(t, "memory")
		s := New(Options{Rank: inHand, Now: c.now, Memory: memory})
		c.advance(maxAge)
		var copies []*heldCopy
		stored := map[doc.Numbers]string{}
		seq, token := int64(0), uint64(0)
		sess := func() Session { return rapid.SampledFrom([]Session{pool, pool, pool, one}).Draw(t, "session") }
		body := func() string {
			seq++
			return fmt.Sprintf(`{"n":%d,"text":"%0*d"}`, seq, rapid.SampledFrom([]int{1, 1, 4000}).Draw(t, "size"), seq)
		}
		write := func(b *Base, sent string) doc.Numbers {
			left := sent
			if rapid.Bool().Draw(t, "merged") {
				left = body()
			}
			seq++
			n := num(seq)
			stored[n] = left
			told := n
			if left != sent && b.Numbers.Known() {
				told = b.Numbers
			}
			b.Commit(Ack{Stored: doc.Revision{Numbers: n, Source: []byte(left)}, Sent: []byte(sent), AnswerNumbers: told})
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"read": func(*rapid.T) {
				text := body()
				n := num(seq)
				if len(stored) > 0 && rapid.Bool().Draw(t, "same") {
					n = num(rapid.Int64Range(1, seq).Draw(t, "revision"))
				}
				if old, ok := stored[n]; ok {
					text = old
				}
				stored[n] = text
				s.Read(sess(), ref, doc.Revision{Numbers: n, Source: []byte(text)}, s.Epoch())
				token++
				copies = append(copies, &heldCopy{copy: Copy{Numbers: n, Token: token, Served: true}, saw: text})
			},
			"write": func(t *rapid.T) {
				if len(copies) == 0 {
					t.Skip("none")
				}
				h := copies[rapid.IntRange(max(0, len(copies)-6), len(copies)-1).Draw(t, "copy")]
				who := sess()
				sent := body()
				b, err := s.TakeCopy(ended(), who, ref, h.copy, []byte(sent))
				if err != nil {
					t.Fatalf("it waited for itself")
				}
				switch {
				case b.Kind == KindNone || b.Kind == KindLost || !b.Numbers.Known():
					t.Fatalf("no guard: %+v", b)
				case b.View != nil && (string(b.View) != h.saw || h.unsure):
					t.Fatalf("counted from %s, and the holder has %s (unsure %v)", b.View, h.saw, h.unsure)
				case b.Stored != nil && string(b.Stored) != stored[b.Numbers]:
					t.Fatalf("%v is said to be %s, and is %s", b.Numbers, b.Stored, stored[b.Numbers])
				}
				switch rapid.IntRange(0, 5).Draw(t, "end") {
				case 0:
					b.Release()
				case 1:
					b.Doubt()
					h.unsure = true
				default:
					write(&b, sent)
					h.saw, h.unsure = sent, false
				}
			},
			"without a copy": func(t *rapid.T) {
				sent := body()
				b, err := s.Take(ended(), sess(), ref, []byte(sent))
				if err != nil {
					t.Fatalf("it waited")
				}
				if rapid.Bool().Draw(t, "fails") {
					b.Release()
				} else {
					write(&b, sent)
				}
			},
			"elsewhere": func(t *rapid.T) {
				other := doc.Ref{Index: "shop", ID: rapid.SampledFrom([]string{"2", "3", "4"}).Draw(t, "id")}
				s.Read(pool, other, rev(1, fmt.Sprintf(`{"text":"%08000d"}`, seq)), s.Epoch())
			},
			"time": func(t *rapid.T) { c.advance(time.Duration(rapid.IntRange(1, 3).Draw(t, "minutes")) * time.Minute) },
			"":     func(t *rapid.T) { audit(t, s) },
		})
	})
}
