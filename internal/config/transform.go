package config

import "encoding/json"

// Step is one operation of a transform. The steps run in their order. Each works on the document that those before it
// left.
type Step struct {
	// Op is what the step does: an operation of RFC 6902 (`add`, `remove`, `replace`, `move`, `copy`, `test`), or
	// `increment`, `append` (one element at the end of a list), `union` (elements that aren't in the list yet), `max`,
	// `min`, `default` (only if the value is missing or null), `now` (the time), `merge` (RFC 7396), `remove_empty` (null,
	// "", [] and {} below the path), `refuse`. A test that fails, and `refuse`, are a 409; a value of the wrong type is a
	// 400.
	Op Action `json:"op"`

	// Path is where the step works: a JSON Pointer (`/updated_at`, `/lines/*/price`). `*` is every element or key, `-` the
	// end of a list. "" is the whole document; for `remove_empty` it is the default. Missing objects on the way are created.
	// Removing a missing value is no error. You can't name a key that is literally `*`. `refuse` has none.
	Path string `json:"path"`

	// From is the pointer from which `move` and `copy` take their value. A `*` in it stands for the same element or key as
	// the `*` at the same place of the path.
	From string `json:"from,omitzero"`

	// Value is a literal, or a reference: {from: incoming, path: /x} (the body that the client sent), {from: current, path:
	// /x} (the stored document; may cost a read), {from: base, path: /x} (what the client had read), {from: header, name:
	// X-User}, {from: id}, {from: index}, {from: user}, {from: now}. If the referenced value doesn't exist, the step leaves
	// the document as it is. {literal: …} is for objects that look like a reference. All operations need a value but
	// `remove`, `move`, `copy`, `now`, `remove_empty` and `refuse`.
	Value Value `json:"value,omitzero"`

	// Message is the text by which `refuse` tells the client why.
	Message string `json:"message,omitzero"`

	// Format is how `now`, and values from now, write the time (of this machine): `rfc3339` (default: text, UTC,
	// milliseconds), `epoch_millis` or `epoch_second` (numbers).
	Format TimeFormat `json:"format,omitzero"`

	// When is a condition in CEL (`incoming.status == "published"`) over request, incoming, current, base and candidate
	// (the document that would be written so far). Reading current may cost a read. Default: the step always runs.
	When string `json:"when,omitzero"`
}

// takesFrom, takesValue and wholeByDefault tell which keys an operation has.
func (a Action) takesFrom() bool { return a == ActionMove || a == ActionCopy }

func (a Action) takesValue() bool {
	switch a {
	case ActionRemove, ActionMove, ActionCopy, ActionNow, ActionRemoveEmpty, ActionRefuse:
		return false
	}
	return true
}

// stores reports whether there is something at the path afterwards.
func (a Action) stores() bool {
	return a != ActionRemove && a != ActionTest && a != ActionRemoveEmpty && a != ActionRefuse
}

func (a Action) wholeByDefault() bool { return a == ActionRemoveEmpty || a == ActionRefuse }

// Value is what a step works with.
type Value struct {
	IsSet   bool            // the file has one
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
