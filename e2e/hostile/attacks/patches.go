package attacks

import "strings"

const (
	operationsType = "application/json-patch+json"
	stepsType      = "application/vnd.optimist-patch+json"
)

// list is a PATCH of a media type with a list of many parts.
func list(media, part string) func(n int) []byte {
	return func(n int) []byte { return request("PATCH", "/i/_doc/1", media, "["+Fill(n, part, ",")+"]") }
}

// around is a PATCH with one text that is repeated between two others.
func around(media, before, text, after string) func(n int) []byte {
	return func(n int) []byte {
		return request("PATCH", "/i/_doc/1", media, before+strings.Repeat(text, n/len(text))+after)
	}
}

func patches() []Attack {
	patch := func(part string) func(n int) []byte { return list(operationsType, part) }
	one := func(before, text, after string) func(n int) []byte {
		return around(operationsType, "[{"+before, text, after+"}]")
	}
	return []Attack{
		{Name: "patch: insertions at the front", Request: patch(`{"op":"add","path":"/l/0","value":%d}`)},
		{Name: "patch: at the end", Request: patch(`{"op":"add","path":"/l/-","value":%d}`)},
		{Name: "patch: removals", Request: patch(`{"op":"remove","path":"/l/0"}`)},
		{Name: "patch: tests", Request: patch(`{"op":"test","path":"/o","value":{"a":%d}}`)},
		{Name: "patch: copies", Request: patch(`{"op":"copy","from":"/l","path":"/c%d"}`)},
		{Name: "patch: copies into themselves", Request: patch(`{"op":"copy","from":"/o","path":"/o/c%d"}`),
			Bounded: "each copy doubles the document, and edits may make it 16 MiB longer"},
		{Name: "patch: moves", Request: patch(`{"op":"move","from":"/l/0","path":"/l/1"}`)},
		{Name: "patch: moves that nest", Request: patch(`{"op":"add","path":"/m","value":{}},{"op":"move","from":"/o","path":"/m/o"},` +
			`{"op":"move","from":"/m","path":"/o"}`)},
		{Name: "patch: long paths", Request: patch(`{"op":"add","path":"` + strings.Repeat("/a", 90) + `","value":%d}`)},
		{Name: "patch: paths of empty names", Request: patch(`{"op":"add","path":"` + strings.Repeat("/", 900) + `","value":%d}`)},
		{Name: "patch: escapes in paths", Request: one(`"op":"add","path":"/`, "~01", `","value":1`)},
		{Name: "patch: a deep path", Request: one(`"op":"add","path":"`, "/", `","value":1`)},
		{Name: "patch: a deep path to copy from", Request: one(`"op":"copy","path":"/a","from":"`, "/a", `"`)},
		{Name: "patch: empty objects", Request: patch("{}")},
		{Name: "patch: numbers", Request: patch("0")},
		{Name: "patch: one key many times", Request: one(`"op":"add"`, `,"op":"add"`, "")},
		{Name: "patch: other keys", Request: one(`"op":"add","path":"/a","value":1`, `,"k":1`, "")},
		{Name: "patch: a long operation", Request: one(`"op":"`, `\u0001`, `","path":"/a"`)},
		{Name: "patch: a path of escapes", Request: one(`"op":"test","value":1,"path":"/`, `\u0001`, `"`)},
		{Name: "patch: a path of no characters", Request: one(`"op":"test","value":1,"path":"/`, "\xff", `"`)},
		{Name: "patch: a path of half characters", Request: one(`"op":"remove","path":"/`, `\ud800`, `"`)},
		{Name: "patch: a wide value", Request: one(`"op":"add","path":"/a","value":[1`, ",{}", "]")},
		{Name: "patch: a value with one key", Request: one(`"op":"add","path":"/a","value":{"k":1`, `,"k":1`, "}")},
		{Name: "patch: a long number", Request: one(`"op":"test","path":"/n","value":1`, "0", "")},
		{Name: "patch: an index of many digits", Request: one(`"op":"add","path":"/l/1`, "0", `","value":1`)},
	}
}

// transforms are patches of the steps that rules have.
func transforms() []Attack {
	steps := func(part string) func(n int) []byte { return list(stepsType, part) }
	one := func(before, text, after string) func(n int) []byte {
		return around(stepsType, "[{"+before, text, after+"}]")
	}
	return []Attack{
		{Name: "steps: increments", Request: steps(`{"op":"increment","path":"/n","value":1}`)},
		{Name: "steps: increments by long numbers", Request: steps(`{"op":"increment","path":"/n","value":` + strings.Repeat("7", 900) + "}")},
		{Name: "steps: unions", Request: steps(`{"op":"union","path":"/l","value":%d}`),
			Bounded: "each step reads the list that the one before it made; the work of edits is bounded"},
		{Name: "steps: appends", Request: steps(`{"op":"append","path":"/l","value":[[%d]]}`)},
		{Name: "steps: remove_empty", Request: steps(`{"op":"remove_empty"}`)},
		{Name: "steps: merges", Request: steps(`{"op":"merge","path":"/o","value":{"k%d":{"k":[]}}}`)},
		{Name: "steps: a wide merge", Request: one(`"op":"merge","path":"/o","value":{"k":{}`, `,"k":{}`, "}")},
		{Name: "steps: empty objects", Request: steps("{}")},
		{Name: "steps: numbers", Request: steps("0")},
		{Name: "steps: one key many times", Request: one(`"op":"add"`, `,"op":"add"`, "")},
		{Name: "steps: an unknown key", Request: one(`"op":"remove","`, `\u0001`, `":"","path":"/a"`)},
		{Name: "steps: an unknown operation", Request: one(`"op":"`, "\xff", `","path":"/a"`)},
		{Name: "steps: a deep path", Request: one(`"op":"add","value":1,"path":"`, "/", `"`)},
		{Name: "steps: paths of empty names", Request: steps(`{"op":"default","value":%d,"path":"` + strings.Repeat("/", 900) + `"}`)},
		{Name: "steps: stars", Request: steps(`{"op":"remove","path":"/*/*/*/%d"}`)},
		{Name: "steps: a path of stars", Request: one(`"op":"remove","path":"`, "/*", `"`)},
		{Name: "steps: a path of escapes", Request: one(`"op":"test","value":1,"path":"/a`, "~0", `"`)},
		{Name: "steps: a wide value", Request: one(`"op":"add","path":"/a","value":[1`, ",{}", "]")},
		{Name: "steps: a deep path of the value", Request: one(`"op":"add","path":"/a","value":{"from":"current","path":"`, "/l", `"}`)},
		{Name: "steps: values from the document", Request: steps(`{"op":"add","path":"/c%d","value":{"from":"current","path":"/o"}}`)},
		{Name: "steps: the whole document", Request: steps(`{"op":"add","path":"/o/c%d","value":{"from":"current"}}`)},
		{Name: "steps: a long source", Request: one(`"op":"add","path":"/a","value":{"from":"`, `\u0001`, `"}`)},
		{Name: "steps: the name of a field", Request: one(`"op":"max","path":"/n","value":{"from":"header","name":"`, "\xff", `"}`)},
	}
}
