package config

import (
	"cmp"
	"time"

	"optimist/internal/unit"
)

// Default is the configuration of an empty file.
func Default() *Config {
	c := start()
	c.builtIn = true
	c.fill()
	return c
}

// start has the values of the keys that a file leaves out.
func start() *Config {
	return &Config{
		Version: 1,
		Listen:  "127.0.0.1:9280",
		Admin:   "127.0.0.1:9281",
		Mode:    ModeGuard,
		Upstream: Upstream{
			TLS:            TLS{Verify: VerifyFull},
			ConnectTimeout: unit.Duration(2 * time.Second),
			IdleTimeout:    unit.Duration(50 * time.Second),
			MaxConnections: 512,
			AcquireTimeout: unit.Duration(5 * time.Second),
			HealthInterval: unit.Duration(10 * time.Second),
		},
		Limits: Limits{
			MaxConnections: 10000,
			MaxHeader:      64 << 10,
			MaxGuardedBody: 16 << 20,
			HeaderTimeout:  unit.Duration(10 * time.Second),
			BodyTimeout:    unit.Duration(30 * time.Second),
			WriteTimeout:   unit.Duration(30 * time.Second),
			MinRate:        240,
			IdleTimeout:    unit.Duration(2 * time.Minute),
		},
		Sniffing: Sniffing{Answer: SniffRewrite},
		Sessions: Sessions{
			Header: Headers{"Optimist-Session", traceparent},
			Infer:  InferCredentialsAndAddress,
			MaxAge: unit.Duration(5 * time.Minute),
			Memory: 256 << 20,

			TrustedProxies: []Prefix{},
		},
		Identity: Identity{Fields: []string{}, Parameters: []string{}},
		Learning: Learning{Clients: ClientsHashed},
		Locks:    startLocks(),
		DeadLetters: DeadLetters{
			Sink:      SinkEngine,
			Index:     "optimist-dead-letters",
			Kafka:     Kafka{Brokers: []string{}, Topic: "optimist-dead-letters", Security: KafkaOpen},
			MaxFolder: 1 << 30,
			MaxLetter: 512 << 10,
			Timeout:   unit.Duration(5 * time.Second),
		},
		Undo:        newUndo(),
		Idempotency: Idempotency{Index: "optimist-idempotency", Keep: unit.Duration(24 * time.Hour), MaxAnswer: 1 << 20},

		Drain:     Drain{Delay: unit.Duration(time.Second)},
		Log:       Log{Format: LogText, Level: LevelInfo},
		Rules:     []Rule{newRule("default")},
		RuleFiles: []string{},
	}
}

func startLocks() Locks {
	return Locks{
		Path:  "/_lock",
		Store: StoreEngine,
		ZooKeeper: ZooKeeper{Servers: []string{}, Root: "/optimist", SessionTimeout: unit.Duration(5 * time.Second), ConnectionRetries: 5,
			ConnectionDelay: unit.Duration(time.Second), Prefixes: Prefixes{Foreground: "A", Background: "B"}},
		Memcached: Memcached{Servers: []string{}, Prefix: "optimist-", Timeout: unit.Duration(500 * time.Millisecond),
			Delay: unit.Duration(50 * time.Millisecond)},
		Index:    "optimist-locks",
		Scripts:  ScriptsAuto,
		TTL:      unit.Duration(30 * time.Second),
		MaxTTL:   unit.Duration(24 * time.Hour),
		Wait:     Wait{Foreground: unit.Duration(2 * time.Second), Background: unit.Duration(2 * time.Second), Max: unit.Duration(time.Hour)},
		Overtake: 16,
		Chain:    15,
		TreeSize: 20_000,
		Compat:   Compat{Type: "lock", TTL: unit.Duration(time.Minute)},
	}
}

func newUndo() Undo {
	return Undo{Index: "optimist-undo", MaxDocuments: 10_000, MaxBytes: 64 << 20, Grace: unit.Duration(5 * time.Second)}
}

// newRule is the rule of a configuration without rules. It also has the values of the keys that a rule in a file leaves out.
func newRule(name string) Rule {
	return Rule{
		Name: name,
		Match: Match{
			Ops: []Op{OpIndex, OpCreate, OpUpdate, OpPatch, OpDelete},
		},
		Base: Base{
			From:      []BaseSource{FromIfMatch, FromSession},
			Reads:     []Read{ReadGet, ReadMget, ReadSearchByWriters},
			Explicit:  ExplicitPass,
			Unknown:   UnknownPass,
			Lost:      LostPass,
			Ambiguous: AmbiguousGuess,
		},
		Merge:      Merge{Default: MergeSent},
		Transform:  []Step{},
		Pipeline:   PipelineGuard,
		OnConflict: ConflictMerge,
		OnMissing:  MissingFail,
		Update:     UpdateMerge,
		Bulk:       BulkGuard,
		Retry: Retry{
			MaxAttempts: 20,
			MaxElapsed:  unit.Duration(10 * time.Second),
			Backoff:     Backoff{BaseInterval: unit.Duration(2 * time.Millisecond), MaxInterval: unit.Duration(200 * time.Millisecond)},
		},
		RetryOnConflict: 3,
		Locks:           LocksOff,
		Rejected:        RejectedRetry,
		OnExhausted:     ExhaustedFail,
		Priority:        PriorityForeground,
	}
}

// fill sets the keys whose defaults depend on other keys. So the configuration shows every value that is in force.
func (c *Config) fill() {
	for i := range c.Rules {
		r := &c.Rules[i]
		r.fill()
		if _, given := c.at[c.RuleKey(i)+".base.from"]; !given && r.Base.Stamp != "" {
			r.Base.From = []BaseSource{FromIfMatch, FromStamp, FromSession}
		}
	}
}

func (r *Rule) fill() {
	r.Mode = cmp.Or(r.Mode, ModeGuard)
	if len(r.Match.Index) == 0 {
		r.Match.Index, r.Match.byDefault = defaultIndices(), true
	}
	if r.Match.Users == nil {
		r.Match.Users = []string{}
	}
	if r.OnDeleteConflict == "" {
		// a rule that refuses conflicts, or lets the stored value win, wants to keep the stored document, too
		r.OnDeleteConflict = DeleteSent
		if r.OnConflict == ConflictFail || r.Merge.Default != MergeSent {
			r.OnDeleteConflict = DeleteFail
		}
	}
}

// defaultIndices are the index patterns of a rule that names none.
func defaultIndices() []string {
	return []string{"*", "-logs-*", "-metrics-*", "-traces-*", "-optimist-*"}
}
