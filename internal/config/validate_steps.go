package config

import (
	"regexp"
	"slices"
	"strings"
)

// step checks whether the keys fit the operation, and the pointers. The package that compiles steps checks the values.
func (v *validator) step(s *Step, key string) {
	has := func(k string) bool { _, ok := v.cfg.at[key+"."+k]; return ok }
	if s.Op == "" {
		if !has("op") {
			v.fail(key, "a step needs an op, as in {op: increment, path: /edits, value: 1}")
		}
		return // without an operation nothing is known of its keys
	}
	v.refusal(s, key)
	switch {
	case s.Op == ActionRefuse:
	case !has("path") && !s.Op.wholeByDefault():
		v.fail(key, "%s needs a path; path: \"\" is the whole document", s.Op)
	case s.Path == "" && slices.Contains([]Action{ActionAdd, ActionReplace, ActionMove, ActionCopy}, s.Op):
		v.warn(key+".path", "\"\" is the whole document: %s puts the value in its place, and nothing stays of what the client sent", s.Op)
	case s.Path != "":
		v.pointer(key+".path", s.Path)
		v.target(s, key+".path")
	}
	v.operands(s, key)
	v.neverHolds(s, key+".when")
	if s.Format != "" && s.Op != ActionNow && s.Value.Source != SourceNow {
		v.fail(key+".format", "only the time has a format: op now, or a value from now")
	}
	if has("when") && strings.TrimSpace(s.When) == "" {
		v.fail(key+".when", "an empty condition; leave the key out for a step that always runs")
	}
}

// operands checks from and value.
func (v *validator) operands(s *Step, key string) {
	_, given := v.cfg.at[key+".from"]
	switch takes := s.Op.takesFrom(); {
	case takes && !given:
		v.fail(key, "%s needs from, the path that it takes the value from", s.Op)
	case !takes && given:
		v.fail(key+".from", "%s has no from; a reference is a value: {from: incoming, path: /x}", s.Op)
	case s.From != "":
		v.pointer(key+".from", s.From)
	}
	switch takes := s.Op.takesValue(); {
	case takes && !s.Value.IsSet:
		v.fail(key, "%s needs a value", s.Op)
	case !takes && s.Value.IsSet:
		v.fail(key+".value", "%s has no value", s.Op)
	}
}

// refusal checks the keys of refuse, and that no other operation has its message.
func (v *validator) refusal(s *Step, key string) {
	_, when := v.cfg.at[key+".when"]
	_, path := v.cfg.at[key+".path"]
	_, message := v.cfg.at[key+".message"]
	switch refuses := s.Op == ActionRefuse; {
	case !refuses && message:
		v.fail(key+".message", "%s has no message", s.Op)
	case !refuses:
	case path:
		v.fail(key+".path", "refuse has no path: it is about the whole write")
	case message && s.Message == "":
		v.fail(key+".message", "an empty message tells the client nothing")
	case !message:
		v.fail(key, "refuse needs a message for the client, as in "+
			"{op: refuse, message: sold out, when: has(candidate.stock) && candidate.stock < 0}")
	case !when:
		v.warn(key, "without a condition (when), it refuses every write")
	}
}

// target checks that the engine takes documents in which the step has put a value at its path.
func (v *validator) target(s *Step, key string) {
	if above, found := strings.CutSuffix(s.Path, "/-"); found && (s.Op == ActionAppend || s.Op == ActionUnion) {
		v.warn(key, "%q is a new element of the list, and %s makes a list in it; to put the value into the list write %q", s.Path, s.Op, above)
	}
	if top, _, _ := strings.Cut(s.Path[1:], "/"); s.Op.stores() && isMetadata(top) {
		v.fail(key, "%q %s", top, isRefused)
	}
}

func (v *validator) pointer(key, p string) {
	if err := checkPointer(p); err != nil {
		v.fail(key, "%q: %s", p, err)
	}
	v.unlikely(key, p)
}

// dotted is the path of a field, as the engine writes it in queries and mappings.
var dotted = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$`)

// unlikely warns of paths that hardly any document has. One that ends with a slash, as paths of folders do, names an empty key. One with a
// dot, as the engine writes the paths of fields, names a key with a dot in it.
func (v *validator) unlikely(key, p string) {
	if above, found := strings.CutSuffix(p, "/"); found && above != "" {
		v.warn(key, "%q names the key \"\" below %s; did you mean %q?", p, above, above)
	}
	for _, name := range pointerTokens(p) {
		if dotted.MatchString(name) {
			v.warn(key, "%q names a key with a dot in it; if a field of an object is meant, write %q", p, strings.ReplaceAll(p, ".", "/"))
			return
		}
	}
}

// compared is a part of the request that a condition compares with a text.
var compared = regexp.MustCompile(`request\.(op|method)\s*==\s*(?:"([^"]*)"|'([^']*)')`)

// neverHolds warns of a condition that compares a part of the request with a text that this part never is.
func (v *validator) neverHolds(s *Step, key string) {
	for _, m := range compared.FindAllStringSubmatch(s.When, -1) {
		can := Op("").choices()
		if m[1] == "method" {
			can = []string{"PUT", "POST", "PATCH", "DELETE"}
		}
		if text := m[2] + m[3]; !slices.Contains(can, text) {
			v.warn(key, "request.%s is never %q; it is one of %s", m[1], text, strings.Join(can, ", "))
		}
	}
}
