package config

import (
	"strings"

	"optimist/internal/unit"
)

// DeadLetters are the writes that can't be placed, of rules with `on_exhausted: dead_letter`, and changes that can't be
// undone. Without such a rule, and such a change, optimist creates nothing.
type DeadLetters struct {
	// Sink is `engine` (default: an index of the engine), `kafka` (a topic) or `file` (the folder alone).
	Sink Sink `json:"sink"`

	// Index is where the engine keeps them. optimist creates it with the first dead letter; `upstream.auth` needs the
	// rights to create, read and write it. Danger: everybody who may read this index can read the documents in it.
	Index string `json:"index"`

	// Kafka is the topic, for `sink: kafka`.
	Kafka Kafka `json:"kafka"`

	// Folder is where dead letters are while the sink can't take them. `sink: file` needs it. Each letter is a file, and
	// on the disk before the client gets the answer. Each process needs a folder of its own. Default: `dead-letters` in
	// the folder STATE_DIRECTORY (systemd sets this variable), else none: a write gets its error while the sink is away.
	Folder string `json:"folder"`

	// MaxFolder is how many bytes the folder may hold. If it is full, writes get their errors.
	MaxFolder unit.Size `json:"max_folder" min:"1MiB"`

	// MaxLetter is how large one dead letter may be: the request, and the document that its client had seen. For a larger
	// one the client gets the error. Most brokers take records of 1 MiB.
	MaxLetter unit.Size `json:"max_letter" min:"1KiB" max:"64MiB"`

	// Timeout is how long the sink may take for one. Then the folder takes it.
	Timeout unit.Duration `json:"timeout" min:"1nanos"`
}

// Kafka is a topic of a Kafka cluster.
type Kafka struct {
	// Brokers are some of the cluster's: host:port.
	Brokers []string `json:"brokers"`

	// Topic is the topic's name. If it isn't there, optimist creates it with one partition, whose records are kept for
	// ever. A topic with `cleanup.policy: compact` can't be used.
	Topic string `json:"topic"`

	// Replicas is in how many brokers a topic is that optimist creates. 0: the brokers' own default.
	Replicas int `json:"replicas" min:"0" max:"32"`

	// Security is `none` (default), `tls`, or a way to log in over TLS: `sasl_plain`, `sasl_scram_256` or `sasl_scram_512`.
	Security KafkaSecurity `json:"security"`

	// CAFile is a PEM file of the authorities that may have signed the brokers' certificates. Default: the system's.
	CAFile string `json:"ca_file"`

	// BasicFile holds `user:password`, for the ways to log in.
	BasicFile string `json:"basic_file"`
}

// Sink is what keeps dead letters.
type Sink string

// KafkaSecurity is how brokers are reached.
type KafkaSecurity string

// The values of Sink and KafkaSecurity.
const (
	SinkEngine Sink = "engine"
	SinkKafka  Sink = "kafka"
	SinkFile   Sink = "file"

	KafkaOpen     KafkaSecurity = "none"
	KafkaTLS      KafkaSecurity = "tls"
	KafkaPlain    KafkaSecurity = "sasl_plain"
	KafkaScram256 KafkaSecurity = "sasl_scram_256"
	KafkaScram512 KafkaSecurity = "sasl_scram_512"
)

func (Sink) choices() []string { return []string{"engine", "kafka", "file"} }
func (KafkaSecurity) choices() []string {
	return []string{"none", "tls", "sasl_plain", "sasl_scram_256", "sasl_scram_512"}
}

// KeepsLetters reports whether a rule asks for dead letters.
func (c *Config) KeepsLetters() bool {
	for i := range c.Rules {
		if c.Rules[i].OnExhausted == ExhaustedDeadLetter {
			return true
		}
	}
	return false
}

func (v *validator) letters() {
	l := &v.cfg.DeadLetters
	if !indexName(l.Index) {
		v.fail("dead_letters.index", "%q is not an index's name", l.Index)
	}
	if l.Index == v.cfg.Locks.Index {
		v.fail("dead_letters.index", "%q is where the locks' documents are (locks.index)", l.Index)
	}
	if l.Sink == SinkKafka {
		v.kafka(&l.Kafka)
	} else if len(l.Kafka.Brokers) > 0 {
		v.warn("dead_letters.kafka", "it has no effect where dead_letters.sink is %s", l.Sink)
	}
}

func (v *validator) kafka(k *Kafka) {
	const key = "dead_letters.kafka"
	if len(k.Brokers) == 0 {
		v.fail(key, "sink: kafka needs brokers, as in brokers: [\"kafka1:9092\"]")
	}
	for _, b := range k.Brokers {
		if !isHostPort(b) {
			v.fail(key+".brokers", "%q is not an address; write host and port, as in kafka1:9092", b)
		}
	}
	if k.Topic == "" || len(k.Topic) > 249 || strings.Trim(k.Topic, alphanumerics+"._-") != "" || strings.Trim(k.Topic, ".") == "" {
		v.fail(key+".topic", "%q is not a topic's name", k.Topic)
	}
	logsIn := k.Security != KafkaOpen && k.Security != KafkaTLS
	switch {
	case logsIn && k.BasicFile == "":
		v.fail(key+".security", "%s needs basic_file", k.Security)
	case !logsIn && k.BasicFile != "":
		v.fail(key+".basic_file", "security: %s doesn't log in; write sasl_scram_512, for example", k.Security)
	}
}
