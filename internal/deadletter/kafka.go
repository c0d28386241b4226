package deadletter

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"optimist/internal/jsontext"
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
	o     TopicOptions
	ready atomic.Bool
	mu    sync.Mutex // one goroutine prepares
	made  *kgo.Client
	view  *view
}

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

// prepare makes the topic, if it isn't there, and begins to read it. After the first success it costs nothing.
func (t *Topic) prepare(ctx context.Context) error {
	if t.ready.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready.Load() {
		return nil
	}
	if err := t.makeTopic(ctx); err != nil {
		return err
	}
	if err := t.checkPolicy(ctx); err != nil {
		return err
	}
	reader, err := t.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.o.Name: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	t.view = newView(reader)
	t.ready.Store(true)
	return nil
}

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
	at, err := t.append(ctx, l.ID, text, in)
	if err != nil || in == (Revision{}) { // a new letter's id is nobody else's
		return at, err
	}
	return at, t.won(ctx, l.ID, at)
}

// Delete implements Store.
func (t *Topic) Delete(ctx context.Context, id string, at Revision) error {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	now, err := t.append(ctx, id, nil, at)
	if err != nil {
		return err
	}
	return t.won(ctx, id, now)
}

// append appends a record that replaces another, if that is still the letter's last.
func (t *Topic) append(ctx context.Context, id string, value []byte, in Revision) (Revision, error) {
	if err := t.prepare(ctx); err != nil {
		return Revision{}, err
	}
	if err := t.made.Ping(ctx); err != nil {
		return Revision{}, fmt.Errorf("%w: %w", ErrAway, err) // nothing was sent
	}
	if in != (Revision{}) {
		if err := t.current(ctx); err != nil {
			return Revision{}, err
		}
		if err := t.view.at(id, in); err != nil {
			return Revision{}, err
		}
	}
	r := &kgo.Record{Key: []byte(id), Value: value, Partition: partition,
		Headers: []kgo.RecordHeader{{Key: replacesBy, Value: strconv.AppendInt(nil, in.n, 10)}}}
	if err := t.made.ProduceSync(ctx, r).FirstErr(); err != nil {
		if errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.InvalidRecord) {
			return Revision{}, fmt.Errorf("%w: %w", ErrStore, err)
		}
		return Revision{}, fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return Revision{n: r.Offset + 1}, nil
}

// won waits until the record is read, and tells whether it counts.
func (t *Topic) won(ctx context.Context, id string, at Revision) error {
	if err := t.view.wait(ctx, at.n); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
	return t.view.counted(id, at)
}

// current waits until all that is in the topic now is read.
func (t *Topic) current(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	end, err := t.offset(ctx, atEnd)
	if err == nil && !t.view.has(end) {
		var start int64
		if start, err = t.offset(ctx, atStart); err == nil && start < end { // else its retention has taken all of it
			err = t.view.wait(ctx, end)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
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
	if err := t.current(ctx); err != nil {
		return nil, Revision{}, err
	}
	at, ok := t.view.revision(id)
	if !ok {
		return nil, Revision{}, ErrNoLetter
	}
	l, err := t.fetch(ctx, at.n-1)
	return l, at, err
}

// fetch reads one record.
func (t *Topic) fetch(ctx context.Context, offset int64) (*Letter, error) {
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
			if r.Offset != offset {
				return nil, ErrNoLetter // the topic's retention has taken it
			}
			return decode(r.Value)
		}
	}
}

// List implements Store.
func (t *Topic) List(ctx context.Context, q *Query) ([]*Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	if err := t.current(ctx); err != nil {
		return nil, err
	}
	return t.view.list(q), nil
}
