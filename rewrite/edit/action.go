package edit

import (
	"fmt"
	"strings"

	"optimist/rewrite/tree"
)

// An Action is what a Step does. The first six are the operations of RFC 6902; the zero Action is none.
type Action uint8

const (
	// OpAdd sets a member, or inserts an element; `-` is behind the last one.
	OpAdd Action = iota + 1
	// OpRemove takes a value away, if there is one.
	OpRemove
	// OpReplace sets a value that must be there.
	OpReplace
	// OpMove takes the value at From away, if there is one, and adds it at Path.
	OpMove
	// OpCopy adds the value at From, if there is one, at Path.
	OpCopy
	// OpTest fails unless the value is there and equal.
	OpTest
	// OpIncrement adds a number, exactly. Nothing and null are 0.
	OpIncrement
	// OpAppend adds one element to the end of an array, also one that is an array. Nothing and null are [].
	OpAppend
	// OpUnion adds those elements of an array, or the one value, that an array does not have yet. Nothing and null are [].
	OpUnion
	// OpMax keeps the larger of two numbers, or of two strings by their bytes. Nothing and null are smaller than all.
	OpMax
	// OpMin keeps the smaller of two numbers, or of two strings by their bytes. Nothing and null are larger than all.
	OpMin
	// OpDefault sets a value where there is nothing, or null.
	OpDefault
	// OpNow sets optimist's time.
	OpNow
	// OpMerge applies a merge patch (RFC 7396).
	OpMerge
	// OpRemoveEmpty takes away null, "", [] and {}, and what becomes empty by it.
	OpRemoveEmpty
	// OpRefuse fails, with a message. It is for rules: in a body it would have no condition.
	OpRefuse
)

var actions = [...]struct {
	name  string
	value bool // it has a value
	from  bool // it has a second path
	whole bool // its path may be the whole document, or, without a path, is
	makes bool // it sets something where there is nothing
	// settles: if it is done again, the result stays the same, and so do the results of other actions that settle.
	settles bool
}{
	0:             {name: "none"},
	OpAdd:         {name: "add", value: true, whole: true, makes: true},
	OpRemove:      {name: "remove"},
	OpReplace:     {name: "replace", value: true, whole: true},
	OpMove:        {name: "move", from: true, whole: true, makes: true},
	OpCopy:        {name: "copy", from: true, whole: true, makes: true},
	OpTest:        {name: "test", value: true, whole: true},
	OpIncrement:   {name: "increment", value: true, makes: true},
	OpAppend:      {name: "append", value: true, makes: true},
	OpUnion:       {name: "union", value: true, makes: true, settles: true},
	OpMax:         {name: "max", value: true, makes: true, settles: true},
	OpMin:         {name: "min", value: true, makes: true, settles: true},
	OpDefault:     {name: "default", value: true, makes: true, settles: true},
	OpNow:         {name: "now", makes: true},
	OpMerge:       {name: "merge", value: true, whole: true, makes: true},
	OpRemoveEmpty: {name: "remove_empty", whole: true},
	OpRefuse:      {name: "refuse", whole: true},
}

// String returns the name that configuration and bodies use.
func (a Action) String() string {
	if int(a) < len(actions) {
		return actions[a].name
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// ParseAction is the inverse of String. The error names what would have been right.
func ParseAction(name string) (Action, error) {
	for a := OpAdd; a <= OpRefuse; a++ {
		if actions[a].name == name {
			return a, nil
		}
	}
	var names []string
	for a := OpAdd; a <= OpRemoveEmpty; a++ {
		names = append(names, actions[a].name)
	}
	return 0, fmt.Errorf("unknown operation %q: one of %s", cut(name, maxShown), strings.Join(names, ", "))
}

// wants is what the action's value must be; "" is anything.
func (a Action) wants() string {
	switch a {
	case OpIncrement:
		return "number"
	case OpMax, OpMin:
		return "number or string"
	}
	return ""
}

// fits reports whether the action can do something with a value of the kind.
func (a Action) fits(k tree.Kind) bool {
	return a.wants() == "" || k == tree.Number || k == tree.String && a != OpIncrement
}

// A Source says where the value of a Step comes from.
type Source uint8

const (
	// FromLiteral is a value that stands in the step.
	FromLiteral Source = iota
	// FromIncoming is what the client sent: the document, or the body of a PATCH.
	FromIncoming
	// FromCurrent is the stored document, as it was before this write. A rule with it makes optimist fetch it.
	FromCurrent
	// FromBase is the document as the client saw it.
	FromBase
	// FromHeader is a header of the request, as a string.
	FromHeader
	// FromID is the document's id, which one that the engine is to name doesn't have yet.
	FromID
	// FromIndex is the index as the request names it.
	FromIndex
	// FromUser is who sent the request, as Inputs.User has it.
	FromUser
	// FromNow is optimist's clock, not the engine's, at the attempt.
	FromNow
)

var sourceNames = [...]string{"literal", "incoming", "current", "base", "header", "id", "index", "user", "now"}

// String returns the name that configuration and bodies use.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return fmt.Sprintf("source(%d)", uint8(s))
}

// ParseSource is the inverse of String. The error names what would have been right.
func ParseSource(name string) (Source, error) {
	for i, n := range sourceNames {
		if n == name {
			return Source(i), nil
		}
	}
	return FromLiteral, fmt.Errorf("unknown source %q: one of %s", cut(name, maxShown), strings.Join(sourceNames[1:], ", "))
}

// isKnown reports whether a value from s is always there.
func (s Source) isKnown() bool { return s == FromLiteral || s == FromIndex || s == FromNow }

// isDocument reports whether s is a document, in which a path leads to the value.
func (s Source) isDocument() bool { return s >= FromIncoming && s <= FromBase }
