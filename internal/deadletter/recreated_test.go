package deadletter

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteTopic takes a topic away, as an operator does.
func deleteTopic(t *testing.T, s *Topic) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = &s.o.Name
	req.TopicNames, req.Topics = []string{s.o.Name}, append(req.Topics, one)
	if _, err := req.RequestWith(t.Context(), s.made); err != nil {
		t.Fatal(err)
	}
}

// TestATopicThatIsMadeAnewHasNoneOfTheOldLetters: its records have the offsets that the old ones had. Who has read the old topic took a new
// letter for an old one, and never saw the new ones.
func TestATopicThatIsMadeAnewHasNoneOfTheOldLetters(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	open := func() *Topic {
		topic, err := OpenTopic(TopicOptions{Brokers: c.ListenAddrs(), Name: "letters", Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(topic.Close)
		return topic
	}
	for name, remake := range map[string]func(s *Topic) *Topic{
		"by another process": func(*Topic) *Topic { return open() },
		"by the same one":    func(s *Topic) *Topic { return s },
	} {
		t.Run(name, func(t *testing.T) {
			s := open()
			var old []*Letter
			for n := range 3 {
				old = append(old, newLetter(n))
				put(t, s, old[n], Revision{})
			}
			if all := list(t, s, &Query{}); len(all) != len(old) {
				t.Fatalf("listed: %v", all)
			}
			deleteTopic(t, s)
			fresh := newLetter(7)
			at := put(t, remake(s), fresh, Revision{})
			for _, one := range old {
				if l, _, err := s.Get(t.Context(), one.ID); !errors.Is(err, ErrNoLetter) {
					t.Errorf("the old letter %s: %+v, %v", one.ID, l, err)
				}
			}
			l, is, err := s.Get(t.Context(), fresh.ID)
			if err != nil || l.ID != fresh.ID || is != at {
				t.Fatalf("the new letter %s: %+v at %v, %v; want it at %v", fresh.ID, l, is, err, at)
			}
			if err := s.Delete(t.Context(), fresh.ID, at); err != nil {
				t.Error(err)
			}
			if all := list(t, s, &Query{}); len(all) != 0 {
				t.Errorf("listed: %v", all)
			}
			deleteTopic(t, s)
		})
	}
}
