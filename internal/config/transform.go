package config

import "encoding/json"

// Step is one operation of a transform. The steps are carried out in their order, each on what those before it left.
type Step struct {
	// Op is what the step does: the operations of RFC 6902 (add, remove, replace, move, copy, test), and increment (adds a number,
	// exactly), append (one element at the end of a list), union (elements that aren't in the list yet), max, min, default (only where
	// there is nothing or null), now (the time), merge (RFC 7396), remove_empty (null, "", [] and {} below the path). A test that
	// fails is a 409; a value of the wrong type a 400.
	Op Action `json:"op"`

	// Path is what it is done to: a JSON Pointer (`/updated_at`, `/lines/*/price`). `*` is every element or key, `-` the end of a
	// list. "" is the whole document, for remove_empty the default. Objects on the way are made where they are missing; to remove
	// what isn't there is no mistake. A key that is literally `*` can't be named.
	Path string `json:"path"`

	// From is the pointer that move and copy take from. Only they have it. A `*` in it stands for what the `*` at the same place of
	// the path does.
	From string `json:"from,omitzero"`

	// Value is a literal, or a reference: {from: incoming, path: /x} (what the client sent), {from: current, path: /x} (what is stored;
	// costs a read where nothing else does), {from: base, path: /x} (what the client had read), {from: header, name: X-User}, {from: id},
	// {from: index}, {from: user}, {from: now}. A reference to what isn't there leaves the document as it is. {literal: …} is for objects that
	// look like a reference. Needed by all but remove, move, copy, now and remove_empty.
	Value Value `json:"value,omitzero"`

	// Format is how the time (of this machine) is written, by now and in values from now: rfc3339 (default: text, UTC, milliseconds),
	// epoch_millis or epoch_second (numbers).
	Format TimeFormat `json:"format,omitzero"`

	// When is a condition in CEL (`incoming.status == "published"`) over request, incoming, current and base; without it the step is
	// always carried out. It is compiled when the file is read. Reading current costs a read where nothing else does.
	When string `json:"when,omitzero"`
}

// takesFrom, takesValue and wholeByDefault tell which keys an operation has.
func (a Action) takesFrom() bool { return a == ActionMove || a == ActionCopy }

func (a Action) takesValue() bool {
	switch a {
	case ActionRemove, ActionMove, ActionCopy, ActionNow, ActionRemoveEmpty:
		return false
	}
	return true
}

func (a Action) wholeByDefault() bool { return a == ActionRemoveEmpty }

// Value is what a step works with.
type Value struct {
	Given   bool            // the file has one
	Source  Source          // where it comes from; empty: Literal
	Literal json.RawMessage // JSON, numbers as they were written
	Path    string          // of incoming, current and base
	Name    string          // of a header
}

// reference is a value that stands elsewhere.
type reference struct {
	From Source `json:"from"`
	Path string `json:"path,omitzero"`
	Name string `json:"name,omitzero"`
}
