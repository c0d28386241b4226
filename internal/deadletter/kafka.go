package deadletter

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"optimist/internal/jsontext"
	"optimist/internal/timer"
)

// Topic keeps letters in a Kafka topic, also for other consumers: one record for each letter, by its id; a record without a value deletes
// the letter.
//
// A topic only grows. So a change of a letter appends a record, which names the record that it replaces. All readers go through the
// records in their order. A record doesn't count if it names one that isn't the letter's last any more. So if two proxies change a letter
// at once, one wins, and both know which. This needs one order of all records: they are in partition 0.
//
// It can't do three things: give room back (the topic's retention does), say that a new letter is there already (the second one doesn't
// count), and work with a compacted topic.
type Topic struct {
	o    TopicOptions
	made *kgo.Client

	mu   sync.Mutex // one goroutine prepares
	view *view      // nil: the topic isn't read
	id   topicID    // of the topic that the view reads
}

// topicID is the brokers' own name of a topic: a topic that is deleted and made anew has another one. Old brokers have none: it is zero.
type topicID [16]byte

// TopicOptions are what a Topic needs. Brokers and Name are required.
type TopicOptions struct {
	Brokers  []string
	Name     string
	Replicas int // of a topic that is made; 0: the brokers' default
	TLS      *tls.Config
	Login    sasl.Mechanism
	// Timeout bounds one call. Default 5s.
	Timeout time.Duration
}

// The one partition, and the header that names the record which is replaced.
const (
	partition  = 0
	replacesBy = "in"
)

// OpenTopic makes a Topic. No broker is asked before its first use. Close it.
func OpenTopic(o TopicOptions) (*Topic, error) {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	t := &Topic{o: o}
	producer := []kgo.Opt{kgo.DefaultProduceTopic(o.Name), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(o.Timeout), kgo.AllowIdempotentProduceCancellation(), kgo.ProducerLinger(0)}
	var err error
	t.made, err = t.client(producer...)
	return t, err
}

// client is a client of the cluster with more options.
func (t *Topic) client(more ...kgo.Opt) (*kgo.Client, error) {
	opts := append([]kgo.Opt{kgo.SeedBrokers(t.o.Brokers...), kgo.ClientID("optimist"), kgo.RetryTimeout(t.o.Timeout)}, more...)
	if t.o.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(t.o.TLS.Clone()))
	}
	if t.o.Login != nil {
		opts = append(opts, kgo.SASL(t.o.Login))
	}
	return kgo.NewClient(opts...)
}

// Close ends its connections. Calls under way fail.
func (t *Topic) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.view != nil {
		t.view.close()
		t.view = nil
	}
	t.made.Close()
}

// prepare returns the view of the topic that is there now. It makes the topic, if there is none. If the topic was deleted and made anew,
// its offsets begin anew, too: then the old view would take one letter for another, and would never see the new ones. So there is a new
// view.
func (t *Topic) prepare(ctx context.Context) (*view, error) {
	id, err := t.ask(ctx)
	there := !errors.Is(err, kerr.UnknownTopicOrPartition)
	if err != nil && there {
		return nil, notAsked(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if there && t.view != nil && t.id == id {
		return t.view, nil
	}
	if err := t.makeTopic(ctx); err != nil {
		return nil, err
	}
	if err := t.checkPolicy(ctx); err != nil {
		return nil, err
	}
	for id, err = t.ask(ctx); errors.Is(err, kerr.UnknownTopicOrPartition) && timer.Sleep(ctx, untilKnown) == nil; {
		id, err = t.ask(ctx)
	}
	if err != nil {
		return nil, notAsked(err)
	}
	if t.view != nil && t.id == id && id != (topicID{}) { // another goroutine has begun to read it
		return t.view, nil
	}
	reader, err := t.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.o.Name: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	if t.view != nil {
		t.view.close()
		t.made.PurgeTopicsFromProducing(t.o.Name) // else it goes on to ask for the old one
	}
	t.view, t.id = newView(reader), id
	return t.view, nil
}

// untilKnown is the pause before a broker is asked again for a topic that was made just now: brokers learn of it a little later.
const untilKnown = 20 * time.Millisecond

// notAsked is the error of a topic that couldn't be asked for. Nothing was sent.
func notAsked(err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.InvalidTopicException) {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// ask asks which topic is there now: one broker after another, until one answers. It asks each of them once. The client's own tries would
// take seconds while the brokers are away, and every letter on its way to the folder would wait for them.
func (t *Topic) ask(ctx context.Context) (topicID, error) {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &t.o.Name
	req.Topics = append(req.Topics, topic)
	err := errNoTopic
	for _, broker := range append(t.made.DiscoveredBrokers(), t.made.SeedBrokers()...) {
		var answer kmsg.Response
		if answer, err = broker.Request(ctx, req); err != nil {
			continue
		}
		res, ok := answer.(*kmsg.MetadataResponse)
		if !ok || len(res.Topics) != 1 {
			return topicID{}, errNoTopic
		}
		return res.Topics[0].TopicID, kerr.ErrorForCode(res.Topics[0].ErrorCode)
	}
	return topicID{}, err
}

var errNoTopic = errors.New("the broker doesn't say whether the topic is there")

func (t *Topic) makeTopic(ctx context.Context) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.o.Name, 1, -1
	if t.o.Replicas > 0 {
		topic.ReplicationFactor = int16(t.o.Replicas) //nolint:gosec // 32 at most
	}
	for _, c := range [][2]string{{"cleanup.policy", "delete"}, {"retention.ms", "-1"}} {
		one := kmsg.NewCreateTopicsRequestTopicConfig()
		one.Name, one.Value = c[0], &c[1]
		topic.Configs = append(topic.Configs, one)
	}
	req.Topics = append(req.Topics, topic)
	req.TimeoutMillis = int32(min(t.o.Timeout.Milliseconds(), 60_000)) //nolint:gosec // a minute at most
	res, err := req.RequestWith(ctx, t.made)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	for _, r := range res.Topics {
		switch err := kerr.ErrorForCode(r.ErrorCode); {
		case err == nil, errors.Is(err, kerr.TopicAlreadyExists), errors.Is(err, kerr.TopicAuthorizationFailed),
			errors.Is(err, kerr.ClusterAuthorizationFailed): // who may not make it may use it: storing a letter tells
		default:
			return fmt.Errorf("%w: the topic %s can't be created: %w", ErrStore, t.o.Name, err)
		}
	}
	return nil
}

// checkPolicy refuses a topic whose records are compacted. Who may not ask is let through.
func (t *Topic) checkPolicy(ctx context.Context) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	topic := kmsg.NewDescribeConfigsRequestResource()
	topic.ResourceType, topic.ResourceName, topic.ConfigNames = kmsg.ConfigResourceTypeTopic, t.o.Name, []string{"cleanup.policy"}
	req.Resources = append(req.Resources, topic)
	res, err := req.RequestWith(ctx, t.made)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	for _, r := range res.Resources {
		for _, c := range r.Configs {
			if c.Name == "cleanup.policy" && c.Value != nil && *c.Value != "delete" {
				return fmt.Errorf("%w: the topic %s has cleanup.policy %s; it takes delete", ErrStore, t.o.Name, *c.Value)
			}
		}
	}
	return nil
}

// Put implements Store.
func (t *Topic) Put(ctx context.Context, l *Letter, in Revision) (Revision, error) {
	text, err := jsontext.Marshal(l)
	if err != nil {
		return Revision{}, fmt.Errorf("%w: %w", ErrStore, err)
	}
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	v, at, err := t.append(ctx, l.ID, text, in)
	if err != nil || in == (Revision{}) { // a new letter's id is nobody else's
		return at, err
	}
	return at, v.won(ctx, l.ID, at)
}

// Delete implements Store.
func (t *Topic) Delete(ctx context.Context, id string, at Revision) error {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	v, now, err := t.append(ctx, id, nil, at)
	if err != nil {
		return err
	}
	return v.won(ctx, id, now)
}

// append appends a record that replaces another, if that is still the letter's last.
func (t *Topic) append(ctx context.Context, id string, value []byte, in Revision) (v *view, at Revision, err error) {
	if in == (Revision{}) {
		v, err = t.prepare(ctx)
	} else if v, err = t.current(ctx); err == nil {
		err = v.at(id, in)
	}
	if err != nil {
		return nil, Revision{}, err
	}
	r := &kgo.Record{Key: []byte(id), Value: value, Partition: partition,
		Headers: []kgo.RecordHeader{{Key: replacesBy, Value: strconv.AppendInt(nil, in.n, 10)}}}
	if err := t.made.ProduceSync(ctx, r).FirstErr(); err != nil {
		if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.InvalidRecord) {
			return nil, Revision{}, fmt.Errorf("%w: %w", ErrStore, err)
		}
		return nil, Revision{}, fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return v, Revision{n: r.Offset + 1}, nil
}

// current waits until all that is in the topic now is read.
func (t *Topic) current(ctx context.Context) (*view, error) {
	v, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	end, err := t.offset(ctx, atEnd)
	if err == nil && !v.has(end) {
		var start int64
		if start, err = t.offset(ctx, atStart); err == nil && start < end { // else its retention has taken all of it
			err = v.wait(ctx, end)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	return v, nil
}

// The protocol's words for the ends of a partition.
const (
	atEnd   = -1
	atStart = -2
)

// offset asks where the partition begins or ends.
func (t *Topic) offset(ctx context.Context, which int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic, part := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp = partition, which
	topic.Topic, topic.Partitions = t.o.Name, append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	res, err := req.RequestWith(ctx, t.made)
	if err != nil {
		return 0, err
	}
	if len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		return 0, errNoEnd
	}
	p := &res.Topics[0].Partitions[0]
	return p.Offset, kerr.ErrorForCode(p.ErrorCode)
}

var errNoEnd = errors.New("the broker doesn't say where the topic ends")

// Get implements Store.
func (t *Topic) Get(ctx context.Context, id string) (*Letter, Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	v, err := t.current(ctx)
	if err != nil {
		return nil, Revision{}, err
	}
	at, ok := v.revision(id)
	if !ok {
		return nil, Revision{}, ErrNoLetter
	}
	l, err := t.fetch(ctx, id, at.n-1)
	return l, at, err
}

// fetch reads one record, if it is the letter's.
func (t *Topic) fetch(ctx context.Context, id string, offset int64) (*Letter, error) {
	c, err := t.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.o.Name: {partition: kgo.NewOffset().At(offset)}}))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	defer c.Close()
	for {
		got := c.PollRecords(ctx, 1)
		if err := got.Err(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAway, err)
		}
		for _, r := range got.Records() {
			if r.Offset != offset || string(r.Key) != id {
				return nil, ErrNoLetter // the topic's retention has taken it, or the topic was made anew just now
			}
			return decode(r.Value)
		}
	}
}

// List implements Store.
func (t *Topic) List(ctx context.Context, q *Query) ([]*Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	v, err := t.current(ctx)
	if err != nil {
		return nil, err
	}
	return v.list(q), nil
}
