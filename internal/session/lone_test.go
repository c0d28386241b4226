package session

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// device is a document that a program keeps the state of something in.
type device struct {
	Name   string   `json:"name"`
	State  string   `json:"state"`
	On     bool     `json:"on"`
	Labels []string `json:"labels"`
	At     string   `json:"at"`
}

func (d device) changed(r *rand.Rand, n int) device {
	switch r.IntN(3) {
	case 0:
		d.State = []string{"idle", "running", "paused"}[r.IntN(3)]
	case 1:
		d.On = !d.On
	default:
		l := []string{"a", "b", "c", "d"}[r.IntN(4)]
		if i := slices.Index(d.Labels, l); i >= 0 {
			d.Labels = slices.Delete(slices.Clone(d.Labels), i, i+1)
		} else {
			d.Labels = append(slices.Clone(d.Labels), l)
		}
	}
	d.At = fmt.Sprintf("2026-01-02T03:04:%02dZ", n%60)
	return d
}

func (d device) body() string {
	b, _ := json.Marshal(d)
	return string(b)
}

// A client is alone. Whatever it reads, and how often, it changes what it has read or written last.
func TestWhatAClientSetsBackIsItsOwnChange(t *testing.T) {
	for name, reads := range map[string]func(r *rand.Rand) int{
		"it reads once":                  func(*rand.Rand) int { return 1 },
		"it reads twice":                 func(*rand.Rand) int { return 2 },
		"it reads once or several times": func(r *rand.Rand) int { return 1 + r.IntN(3) },
		"it reads now and then":          func(r *rand.Rand) int { return r.IntN(4) / 3 },
	} {
		for seed := range uint64(40) {
			s, _ := newTest(t, func(o *Options) { o.Rank = nil })
			r := rand.New(rand.NewPCG(seed, 0))
			stored, seqNo := device{Name: "pump 7", State: "idle", Labels: []string{}}, int64(5)
			s.Read(pool, ref, rev(seqNo, stored.body()), s.Epoch())
			for n := range 30 {
				for range reads(r) {
					s.Read(pool, ref, rev(seqNo, stored.body()), s.Epoch())
				}
				sent := stored.changed(r, n)
				b := take(t, s, pool, sent.body())
				if got := seen(b.View); got.State != stored.State && got.State == sent.State || got.On != stored.On && got.On == sent.On ||
					!slices.Equal(got.Labels, stored.Labels) && slices.Equal(got.Labels, sent.Labels) {
					t.Fatalf("%s, seed %d, change %d: %s is sent, and the base is %s: part of %s stays", name, seed, n, sent.body(), b.View, stored.body())
				}
				seqNo, stored = seqNo+1, sent
				b.Commit(Ack{Stored: rev(seqNo, sent.body()), Sent: []byte(sent.body())})
			}
		}
	}
}

func seen(view []byte) (d device) {
	_ = json.Unmarshal(view, &d)
	return d
}
