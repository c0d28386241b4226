package session

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever clients read and write, and however their writes end, the accounts are right while the product's ranking chooses, and the
// history and its digests come and go.
func TestTheAccountsAreRightWhileBasesAreRanked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, c := newTest(t, func(o *Options) { o.Rank = nil; o.Memory = 64 << 10 })
		docs := []string{`{"l":[]}`}
		var open []Base
		var sents []string
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1, 2:
				i := rapid.IntRange(max(0, len(docs)-4), len(docs)-1).Draw(rt, "rev")
				s.Read(pool, ref, rev(int64(i+1), docs[i]), s.Epoch())
			case 3, 4:
				d := docs[rapid.IntRange(max(0, len(docs)-6), len(docs)-1).Draw(rt, "base")]
				sent := strings.Replace(d, `]`, fmt.Sprintf(`,"e%d"]`, rapid.IntRange(0, 9).Draw(rt, "e")), 1)
				sent = strings.Replace(sent, `[,`, `[`, 1)
				if b, err := s.Take(ended(), pool, ref, []byte(sent)); err == nil {
					open, sents = append(open, b), append(sents, sent)
				}
			case 5:
				c.advance(maxAge / 8)
			default:
				if len(open) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(open)-1).Draw(rt, "which")
				switch rapid.IntRange(0, 4).Draw(rt, "end") {
				case 0:
					open[i].Release()
				case 1:
					open[i].Doubt()
				default:
					docs = append(docs, sents[i])
					commit(open[i], int64(len(docs)), sents[i])
					open[i].NoteAnswer()
				}
				open, sents = append(open[:i:i], open[i+1:]...), append(sents[:i:i], sents[i+1:]...)
			}
			audit(rt, s)
		}
		for i := range open {
			open[i].Release()
		}
		audit(rt, s)
		for _, sh := range s.shards {
			if sh.pending.Len() > 0 {
				rt.Errorf("%d documents are in flight after the end", sh.pending.Len())
			}
		}
	})
}
