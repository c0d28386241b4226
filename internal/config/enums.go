package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"optimist/internal/spelling"
)

// The enumerations. Each value is written in the file as the constant's string; the decoder asks choices for what may
// stand there, and names the nearest where something else does.
type (
	// Mode is what is done with writes.
	Mode string
	// Verify is how far a node's certificate is checked.
	Verify string
	// SniffAnswer is how `_nodes/http` is answered.
	SniffAnswer string
	// Infer is what makes a session without the header.
	Infer string
	// LogFormat is how log lines are written.
	LogFormat string
	// ShowClients is how clients are named.
	ShowClients string
	// LogLevel is the least level that is written.
	LogLevel string
	// Op is an operation that a rule takes.
	Op string
	// BaseSource is where a base may come from.
	BaseSource string
	// Read is a request whose answers are remembered.
	Read string
	// Explicit is what happens to a client's own guard.
	Explicit string
	// Unknown is what happens without a base.
	Unknown string
	// Lost is what happens when the base is gone.
	Lost string
	// Ambiguous is what happens when several reads could be the base.
	Ambiguous string
	// MergeDefault is the strategy where no path says otherwise.
	MergeDefault string
	// Strategy is a path's strategy.
	Strategy string
	// Pipeline is what happens to conflicts where an ingest pipeline runs.
	Pipeline string
	// OnConflict is what happens to a stale write.
	OnConflict string
	// OnMissing is what happens to a write of a document that is gone.
	OnMissing string
	// OnDeleteConflict is what happens to a stale delete.
	OnDeleteConflict string
	// Update is who merges an _update.
	Update string
	// Bulk is what happens to items of a _bulk.
	Bulk string
	// Rejected is what happens to a write that the engine rejects.
	Rejected string
	// OnExhausted is what happens to a write that can't be placed.
	OnExhausted string
	// Enforcement is what locks are to writes.
	Enforcement string
	// Priority is which writes go first.
	Priority string
	// Action is what a step of a transform does.
	Action string
	// Source is where a step's value comes from.
	Source string
	// TimeFormat is how now is written.
	TimeFormat string
)

// The values that the code names. The methods choices have all values. The comments on the keys say what the values mean.
const (
	ModeGuard   Mode = "guard"
	ModeObserve Mode = "observe"
	ModeOff     Mode = "off"

	VerifyFull Verify = "full"
	VerifyNone Verify = "none"

	SniffRewrite SniffAnswer = "rewrite"
	SniffPass    SniffAnswer = "pass"

	InferCredentialsAndAddress Infer = "credentials_and_address"
	InferCredentials           Infer = "credentials"
	InferNone                  Infer = "none"

	LogText LogFormat = "text"
	LogJSON LogFormat = "json"

	ClientsHashed ShowClients = "hashed"
	ClientsShown  ShowClients = "shown"

	LevelDebug LogLevel = "debug"
	LevelInfo  LogLevel = "info"

	OpIndex  Op = "index"
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpPatch  Op = "patch"
	OpDelete Op = "delete"

	FromIfMatch BaseSource = "if_match"
	FromStamp   BaseSource = "stamp"
	FromSession BaseSource = "session"

	ReadGet             Read = "get"
	ReadMget            Read = "mget"
	ReadSearch          Read = "search"
	ReadSearchByWriters Read = "search_by_writers"

	ExplicitPass  Explicit = "pass"
	ExplicitMerge Explicit = "merge"

	UnknownPass   Unknown = "pass"
	UnknownFetch  Unknown = "fetch"
	UnknownReject Unknown = "reject"

	LostPass   Lost = "pass"
	LostReject Lost = "reject"

	AmbiguousGuess Ambiguous = "guess"
	AmbiguousFail  Ambiguous = "fail"

	MergeSent MergeDefault = "sent"

	StrategyFail   Strategy = "fail"
	StrategySum    Strategy = "sum"
	StrategyMax    Strategy = "max"
	StrategyMin    Strategy = "min"
	StrategyUnion  Strategy = "union"
	StrategyAppend Strategy = "append"
	StrategyByKey  Strategy = "by_key"

	PipelineGuard Pipeline = "guard"
	PipelineRerun Pipeline = "rerun"

	ConflictMerge OnConflict = "merge"
	ConflictFail  OnConflict = "fail"

	MissingFail     OnMissing = "fail"
	MissingRecreate OnMissing = "recreate"

	DeleteSent OnDeleteConflict = "sent"
	DeleteFail OnDeleteConflict = "fail"

	UpdateMerge  Update = "merge"
	UpdateEngine Update = "engine"

	BulkGuard  Bulk = "guard"
	BulkPass   Bulk = "pass"
	BulkRefuse Bulk = "refuse"

	RejectedRetry       Rejected    = "retry"
	RejectedPass        Rejected    = "pass"
	ExhaustedFail       OnExhausted = "fail"
	ExhaustedDeadLetter OnExhausted = "dead_letter"

	LocksOff     Enforcement = "off"
	LocksEnforce Enforcement = "enforce"

	PriorityForeground Priority = "foreground"
	PriorityBackground Priority = "background"

	ActionAdd         Action = "add"
	ActionRemove      Action = "remove"
	ActionReplace     Action = "replace"
	ActionMove        Action = "move"
	ActionCopy        Action = "copy"
	ActionTest        Action = "test"
	ActionAppend      Action = "append"
	ActionUnion       Action = "union"
	ActionNow         Action = "now"
	ActionRemoveEmpty Action = "remove_empty"
	ActionRefuse      Action = "refuse"

	SourceIncoming Source = "incoming"
	SourceCurrent  Source = "current"
	SourceBase     Source = "base"
	SourceHeader   Source = "header"
	SourceNow      Source = "now"

	TimeRFC3339 TimeFormat = "rfc3339"
)

// ParseMode reads guard, observe or off. The error names what would be right.
func ParseMode(s string) (Mode, error) {
	if slices.Contains(Mode("").choices(), s) {
		return Mode(s), nil
	}
	return "", errors.New(notOneOf(Mode(""), s))
}

// enum is a string type with a closed set of values.
type enum interface{ choices() []string }

// synonyms is an enumeration with values for which people write other words. meant returns the value for such a word, or "".
type synonyms interface{ meant(word string) string }

func (Mode) meant(word string) string {
	return map[string]string{"on": "guard", "true": "guard", "enabled": "guard", "false": "off", "disabled": "off"}[word]
}

func (Op) meant(word string) string {
	return map[string]string{
		"put": "index", "post": "index", "write": "index", "insert": "create", "upsert": "update", "remove": "delete",
	}[word]
}

// notOneOf is the sentence about a word that is no value of an enumeration.
func notOneOf(e enum, word string) string {
	text := spelling.NotOneOf(word, e.choices())
	if s, ok := e.(synonyms); ok {
		if meant := s.meant(strings.ToLower(word)); meant != "" && !strings.Contains(text, "did you mean") {
			text += fmt.Sprintf("; did you mean %q?", meant)
		}
	}
	return text
}

func (Mode) choices() []string        { return []string{"guard", "observe", "off"} }
func (Verify) choices() []string      { return []string{"full", "none"} }
func (SniffAnswer) choices() []string { return []string{"rewrite", "pass"} }
func (Infer) choices() []string {
	return []string{"credentials_and_address", "credentials", "none"}
}
func (LogFormat) choices() []string    { return []string{"text", "json"} }
func (ShowClients) choices() []string  { return []string{"hashed", "shown"} }
func (LogLevel) choices() []string     { return []string{"debug", "info", "warn", "error"} }
func (Op) choices() []string           { return []string{"index", "create", "update", "patch", "delete"} }
func (BaseSource) choices() []string   { return []string{"if_match", "stamp", "session"} }
func (Read) choices() []string         { return []string{"get", "mget", "search", "search_by_writers"} }
func (Explicit) choices() []string     { return []string{"pass", "merge"} }
func (Unknown) choices() []string      { return []string{"pass", "fetch", "reject"} }
func (Lost) choices() []string         { return []string{"pass", "reject"} }
func (Ambiguous) choices() []string    { return []string{"guess", "fail"} }
func (MergeDefault) choices() []string { return []string{"sent", "current", "fail"} }
func (Strategy) choices() []string {
	return []string{"sent", "current", "fail", "sum", "max", "min", "union", "append"}
}
func (Pipeline) choices() []string         { return []string{"guard", "rerun"} }
func (OnConflict) choices() []string       { return []string{"merge", "fail"} }
func (OnMissing) choices() []string        { return []string{"fail", "recreate"} }
func (OnDeleteConflict) choices() []string { return []string{"sent", "fail"} }
func (Update) choices() []string           { return []string{"merge", "engine"} }
func (Bulk) choices() []string             { return []string{"guard", "pass", "refuse"} }
func (Enforcement) choices() []string      { return []string{"off", "enforce"} }
func (Rejected) choices() []string         { return []string{"retry", "pass"} }
func (OnExhausted) choices() []string      { return []string{"fail", "dead_letter"} }
func (Priority) choices() []string         { return []string{"foreground", "background"} }
func (Action) choices() []string {
	return []string{"add", "remove", "replace", "move", "copy", "test", "increment", "append", "union", "max", "min", "default", "now",
		"merge", "remove_empty", "refuse"}
}
func (Source) choices() []string {
	return []string{"incoming", "current", "base", "header", "id", "index", "user", "now"}
}
func (TimeFormat) choices() []string { return []string{"rfc3339", "epoch_millis", "epoch_second"} }
