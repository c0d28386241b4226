// Package merge replays a client's change, base→sent, on the current document.
//
// It does no I/O, keeps no reference to its arguments (but for Result.Doc), and is safe for concurrent use. For guesses it
// remembers how far numbers usually move; it keeps no other state. It does not promise that a merged document may be written: the
// guard and the loop decide that. It knows nothing of the engine: neither mappings nor that `{"a.b":1}` and `{"a":{"b":1}}` are
// one field there. Package tree says what values are, and when they are equal.
//
// # Merge
//
// A merge has three sides: the base, which the client saw; sent, which the client made of it; and current, the stored document.
// The merge makes the changes from base to sent in current's bytes; every byte that no edit touches stays. A value that only one
// side changed, or that both changed to the same, is settled; the latter is a conflict under Fail. If both changed it differently:
//
//   - two objects merge key by key, and two arrays by their elements, if the base has a value of the same kind there, or
//     null or nothing: those count as {} and [];
//   - everything else is one value, and the Strategy of its path decides. A value that one side removed and the other
//     changed is such a value, too. But a side that only left an empty value out has changed nothing: see isDropped. An array that one
//     side has left out is an empty one: see isEmptied.
//
// What sent added goes to the end of its object, in sent's order and spelling.
//
// # Arrays
//
// The scripts of sent and of current, as package diff has them, are merged gap by gap:
//
//   - All insertions are kept; at one gap current's come first. That holds for equal ones, too: two clients that append
//     the same append it twice, as two sums count twice. Where the base is a guess, that has bounds: see Merger.Guessing.
//   - An element is gone if either side removed it: removals of both count once, and a removal never overlaps. What one
//     side puts in the place of an element stays, though the other removed that element.
//   - An element that both sides removed and both inserted again was moved by both: it stays where current has it.
//   - Strings and objects that one side moved and the other removed are gone, if the base has them once.
//   - What a side puts in the place of elements that it moved away is an insertion, and no replacement, and elements that it
//     moved replace nothing. Numbers are equal by chance: among them nothing was moved where all keep their places.
//   - What was removed and what was inserted between the same two neighbours stands for each other one by one, in their order,
//     those that have most in common; what is left of either is removed, or inserted. An element for which both sides have
//     another is merged like the value of a key, so that objects merge key by key. The same elements beside it on both
//     sides count once.
//
// An array of which some elements are equal, or arrays of numbers, may be a window that slides, whose insertions all count, or a row, which
// merges place by place: see run.edits.
//
// Where one side moved and changed an object that the other touched, or both replaced it, and not by the same object, the elements
// are merged as ByKey does, if all of them are objects that a member tells apart: see byIdentity. So they are where one side
// put an object with another `id` into the place of one that the other side changed.
//
// An object with an id that a side moved from one list to another is moved with what the other side changed in it: see transfer. Two or
// three numbers, some of them decimals, are a point, and one value: see isPoint. So are two scripts whose comparison is over Limits.Cells.
//
// # Strategies
//
// Sent, Current and Fail decide about a value, and about all below it that no other rule matches. Under Fail it is a conflict, too, if both
// sides made the same change, or removed the same: see fail.go. The others are for one
// value each: Sum, Max, Min for what both changed and is a number on both sides (Max, Min: or a string), where a missing
// base or null is 0 to Sum; Union, Append and ByKey for arrays that both changed, of which a missing one is empty.
// Where such a strategy meets what it can't be applied to, it decides like Fail: nothing is guessed. ByKey only, where an
// element has no key or shares it, gives way to the element edits above.
//
//   - Sum: current + (sent − base), with the most decimal places of the three; also where both made the same change.
//   - Max, Min: the larger or the smaller of sent and current; strings by their bytes.
//   - Union: current without what sent took out of the base's set, then what sent added to it and current lacks.
//   - Append: current without the base's elements that sent removed, then all elements that sent inserted.
//   - ByKey: current's elements, each merged with those of the same key as one value of the path with `*`; then sent's
//     new ones. Those that only sent has moved go to where the fewest others are on another side of them than there. One that a
//     side removed and the other changed is a value that both changed.
//
// An array that a side had removed, and of which these leave nothing, is not there.
package merge
