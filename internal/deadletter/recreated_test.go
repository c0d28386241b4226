package deadletter

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
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

func cluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func openTopic(t *testing.T, c *kfake.Cluster) *Topic {
	t.Helper()
	topic, err := OpenTopic(TopicOptions{Brokers: c.ListenAddrs(), Name: "letters", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(topic.Close)
	return topic
}

// TestATopicThatIsMadeAnewHasNoneOfTheOldLetters: its records have the offsets that the old ones had. Who has read the old topic took a new
// letter for an old one, and never saw the new ones.
func TestATopicThatIsMadeAnewHasNoneOfTheOldLetters(t *testing.T) {
	c := cluster(t)
	open := func() *Topic { return openTopic(t, c) }
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

// TestATopicWithoutAnIDIsMadeAnew: brokers before Kafka 2.8 have no ids. Who finds no topic, and makes it, knows that it is another one.
func TestATopicWithoutAnIDIsMadeAnew(t *testing.T) {
	s := openTopic(t, cluster(t, kfake.MaxVersions(kversion.V2_7_0())))
	old := newLetter(0)
	put(t, s, old, Revision{})
	if all := list(t, s, &Query{}); len(all) != 1 {
		t.Fatalf("listed: %v", all)
	}
	deleteTopic(t, s)
	fresh := newLetter(7)
	put(t, s, fresh, Revision{})
	if all := list(t, s, &Query{}); len(all) != 1 || all[0].ID != fresh.ID {
		t.Errorf("listed: %v; want %s", all, fresh.ID)
	}
}

// TestBrokersThatAreAwayAreToldAtOnce: the letter goes into the folder then, and its client waits for that.
func TestBrokersThatAreAwayAreToldAtOnce(t *testing.T) {
	c := cluster(t)
	s := openTopic(t, c)
	put(t, s, newLetter(0), Revision{})
	c.Close()
	began := time.Now()
	_, err := s.Put(t.Context(), newLetter(1), Revision{})
	if took := time.Since(began); !errors.Is(err, ErrAway) || took > s.o.Timeout/10 {
		t.Errorf("%v, after %s", err, took)
	}
}

// TestATopicThatMayNotBeSeenRefuses: a letter that waits for brokers that are away would wait for ever.
func TestATopicThatMayNotBeSeenRefuses(t *testing.T) {
	c := cluster(t)
	c.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		res := r.ResponseKind().(*kmsg.MetadataResponse)
		for _, topic := range r.(*kmsg.MetadataRequest).Topics {
			one := kmsg.NewMetadataResponseTopic()
			one.Topic, one.ErrorCode = topic.Topic, kerr.TopicAuthorizationFailed.Code
			res.Topics = append(res.Topics, one)
		}
		return res, nil, true
	})
	if _, err := openTopic(t, c).Put(t.Context(), newLetter(0), Revision{}); !errors.Is(err, ErrStore) || !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Error(err)
	}
}
