package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func (v *validator) rules() {
	if v.cfg.DefaultRules() {
		return
	}
	first := map[string]string{}
	for i := range v.cfg.Rules {
		r, key := &v.cfg.Rules[i], v.cfg.RuleKey(i)
		switch at, dup := first[r.Name]; {
		case r.Name == "" && v.known[key+".name"]:
		case r.Name == "":
			v.fail(key, "a rule needs a name, for metrics and answers")
		case !isRuleName(r.Name):
			v.fail(key+".name", "%q: a name has letters, digits, dots, dashes and underscores, 64 at most", r.Name)
		case dup:
			v.fail(key+".name", "%q is the name of %s, too; names must differ", r.Name, v.rulePlace(at, key))
		default:
			first[r.Name] = key
		}
		v.rule(r, key)
	}
}

// rulePlace names the rule at key, in a message about the rule at beside. It names the file only if the two stand in different files.
func (v *validator) rulePlace(key, beside string) string {
	if v.cfg.at[key].file == v.cfg.at[beside].file {
		return localKey(key)
	}
	return localKey(key) + " in " + v.cfg.Where(key)
}

func (v *validator) rule(r *Rule, key string) {
	v.match(&r.Match, key+".match")
	v.base(&r.Base, key+".base")
	if r.Base.Stamp != "" && len(r.Match.Headers)+len(r.Match.Users) > 0 {
		v.fail(key+".base.stamp", "a rule that asks for headers or users can't stamp: another client may write a copy back, and its write "+
			"would store the stamp. Stamp in a rule for all clients of the index")
	}
	v.writeID(r, key+".write_id")
	for i := range r.Transform {
		v.step(&r.Transform[i], key+".transform["+strconv.Itoa(i)+"]")
	}
	if r.Mode != "" && modeRank(r.Mode) > modeRank(v.cfg.Mode) {
		v.warn(key+".mode", "%s has no effect while the mode of the file is %s: a rule can only do less", r.Mode, v.cfg.Mode)
	}
	if r.OnConflict == ConflictFail && (len(r.Merge.Paths) > 0 || r.Merge.Default != MergeSent) {
		v.warn(key+".merge", "it has no effect where on_conflict is fail")
	}
	for _, p := range r.Merge.Paths {
		v.unlikely(key+".merge.paths."+p.Path, p.Path)
		if dotted.MatchString(p.Key) {
			v.warn(key+".merge.paths."+p.Path, "by_key names a key with a dot in it, %q; a field of an object in the list's objects can't be named",
				p.Key)
		}
	}
	v.overlaps(&r.Merge, newPathTree(r.Merge.Paths), key+".merge")
	v.uses(r, key)
	v.enforcement(r, key)
	if r.Retry.MaxAttempts == 1 && r.OnConflict == ConflictMerge && len(r.Merge.Paths) > 0 {
		v.warn(key+".retry.max_attempts", "with 1 nothing is ever merged: the first conflict is the last try")
	}
	if b := &r.Retry.Backoff; b.MaxInterval < b.BaseInterval {
		v.fail(key+".retry.backoff.max_interval", "%s is less than base_interval, %s", b.MaxInterval, b.BaseInterval)
	}
	if t := &r.Retry; t.MaxElapsed < t.Backoff.BaseInterval {
		v.warn(key+".retry.max_elapsed", "%s is less than backoff.base_interval, %s: hardly any write is tried again", t.MaxElapsed,
			t.Backoff.BaseInterval)
	}
}

// modeRank orders the modes by how much they do.
func modeRank(m Mode) int { return slices.Index([]Mode{ModeOff, ModeObserve, ModeGuard}, m) }

// regular finds signs that regular expressions have, and index names and patterns don't.
var regular = regexp.MustCompile(`[][()^$+]|[-_]\.\*`)

func (v *validator) match(m *Match, key string) {
	empty(v, key+".index", m.Index, "nothing; leave the key out for every index but the usual exceptions")
	empty(v, key+".ops", m.Ops, "nothing; leave the key out for all operations")
	empty(v, key+".users", m.Users, "nobody; leave the key out for everybody")
	takes := len(m.Index) == 0
	for i, p := range m.Index {
		sub := key + ".index[" + strconv.Itoa(i) + "]"
		name, out := strings.CutPrefix(p, "-")
		takes = takes || !out
		switch {
		case name == "":
			v.fail(sub, "an empty name takes nothing")
		case strings.Contains(name, ","):
			v.fail(sub, "%q: write the names as entries of the list", p)
		case strings.ContainsAny(name, " /\\?\"<>|#:") || name == "." || name == "..":
			v.fail(sub, "%q can't be an index's name", p)
		case name != strings.ToLower(name):
			v.fail(sub, "%q: the engine's index names are in lower case: write %s", p, strings.ToLower(p))
		case name[0] == '_' || name[0] == '+':
			v.fail(sub, "%q: the engine's index names don't begin with %c", p, name[0])
		case strings.ContainsAny(name, "“”„‟«»‘’‚"):
			v.warn(sub, "%q has quotes as in printed texts, which belong to the name here; quotes are written \" or '", p)
		case regular.MatchString(name):
			v.warn(sub, "%q looks like a regular expression, which hardly any index's name fits; here * stands for any characters, as in shop-*", p)
		}
	}
	if !takes {
		v.fail(key+".index", "patterns that only exclude leave nothing; put \"*\" first")
	}
	duplicates(v, key+".ops", m.Ops)
	for _, h := range m.Headers {
		if h.Pattern == "" {
			v.fail(key+".headers."+h.Name, "an empty pattern takes only a header without a value; \"*\" takes any")
		}
	}
	for i, u := range m.Users {
		if u == "" {
			v.fail(key+".users["+strconv.Itoa(i)+"]", "an empty name takes nobody")
		}
	}
	duplicates(v, key+".users", m.Users)
}

func (v *validator) base(b *Base, key string) {
	duplicates(v, key+".from", b.From)
	duplicates(v, key+".reads", b.Reads)
	strength := func(a, b BaseSource) int {
		return slices.Index(a.choices(), string(a)) - slices.Index(b.choices(), string(b))
	}
	if !slices.IsSortedFunc(b.From, strength) {
		var first []string
		for _, source := range slices.SortedFunc(slices.Values(b.From), strength) {
			first = append(first, string(source))
		}
		v.fail(key+".from", "write the strongest first: [%s]", strings.Join(first, ", "))
	}
	v.stamp(b, key)
	switch {
	case len(b.From) > 0:
	case b.Unknown == UnknownReject:
		v.warn(key+".from", "with no source and unknown: reject, only writes with a guard of the client's own are taken")
	case b.Unknown == UnknownPass:
		v.warn(key+".from", "with no source and unknown: pass, no document that a client sends whole is guarded; "+
			"leave the key out for the usual sources")
	}
}

// LockPathID is the value of lock_path that stands for the document's id.
const LockPathID = "id"

// enforcement checks what a rule says of locks.
func (v *validator) enforcement(r *Rule, key string) {
	if r.Locks != LocksEnforce {
		if r.LockPath != "" || r.LockGlobal != "" {
			v.fail(key+".locks", "lock_path and lock_global say which locks protect documents: they need locks: enforce")
		}
		return
	}
	if v.cfg.Locks.Path == "" {
		v.fail(key+".locks", "there are no locks that could be enforced: locks.path is empty")
	}
	if v.cfg.Locks.Store != StoreEngine {
		v.fail(key+".locks", "locks can be enforced where the engine keeps them (locks.store: engine), not %s", v.cfg.Locks.Store)
	}
	_, some := v.cfg.at[key+".match.ops"]
	if some || len(r.Match.Headers)+len(r.Match.Users) > 0 {
		v.fail(key+".locks", "a rule that takes only some writes to its indices (match.ops, match.headers, match.users) can't enforce locks: "+
			"the others would pass them by")
	}
	if r.Bulk == BulkPass {
		v.fail(key+".bulk", "pass has items of a bulk go unguarded, and enforced locks need the guard; leave it out, or write refuse")
	}
	if r.Update == UpdateEngine {
		v.fail(key+".update", "engine leaves writes to the engine unguarded, and enforced locks need the guard")
	}
	if r.LockPath != "" && r.LockPath != LockPathID {
		if err := checkPointer(r.LockPath); err != nil {
			v.fail(key+".lock_path", "%q: %s; or write id, where a document's id is its path", r.LockPath, err)
		}
	}
	if r.Mode != "" && r.Mode != ModeGuard {
		v.warn(key+".locks", "locks are enforced in the mode guard only, and this rule's is %s", r.Mode)
	}
}

func (v *validator) writeID(r *Rule, key string) {
	switch field := r.WriteID; {
	case field == "":
	case field == r.Base.Stamp:
		v.fail(key, "%q is the field of base.stamp: a stamp is never stored, and marks are", field)
	case badField(field):
		v.fail(key, "%q can't be the field of marks: a name at the top of the document, without . / * and quotes", field)
	case isMetadata(field):
		v.fail(key, "%q %s", field, isRefused)
	}
}

// isMetadata reports whether a name is one of the engine's own fields. A stamp may have such a name, because it is never stored.
func isMetadata(name string) bool {
	return slices.Contains([]string{"_id", "_index", "_source", "_routing", "_seq_no", "_version", "_type", "_primary_term", "_field_names",
		"_ignored"}, name)
}

// isRefused ends the message about such a name.
const isRefused = "is a metadata field: the engine refuses documents that have one"

// badField reports whether a name can't be that of a field at the top of documents.
func badField(name string) bool {
	return strings.ContainsAny(name, "./*\"\\") || strings.ContainsFunc(name, unicode.IsControl)
}

func (v *validator) stamp(b *Base, key string) {
	at := slices.Index(b.From, FromStamp)
	_, given := v.cfg.at[key+".from"]
	switch {
	case b.Stamp == "":
		if at >= 0 {
			v.fail(key+".from["+strconv.Itoa(at)+"]", "a stamp needs a field: set base.stamp, as in stamp: _rev")
		}
		return
	case strings.HasPrefix(b.Stamp, "/"):
		v.fail(key+".stamp", "%q: write the field's name, %q; a stamp stands at the top of the document", b.Stamp, b.Stamp[1:])
	case badField(b.Stamp):
		v.fail(key+".stamp", "%q can't be a stamp's field: a name at the top of the document, without . / * and quotes", b.Stamp)
	}
	if given && at < 0 {
		v.warn(key+".stamp", "documents are stamped, but no write is based on the stamp: from doesn't have stamp")
	}
}

// empty fails for a list that a file gives without entries. Without the key, a list isn't empty, but nil or the default.
func empty[E any](v *validator, key string, list []E, takes string) {
	if list != nil && len(list) == 0 {
		v.fail(key, "an empty list takes %s", takes)
	}
}

// duplicates fails for entries of a list that stand there twice.
func duplicates[E ~string](v *validator, key string, list []E) {
	seen := map[E]bool{}
	for i, e := range list {
		if e != "" && seen[e] {
			v.fail(key+"["+strconv.Itoa(i)+"]", "%q is here twice", string(e))
		}
		seen[e] = true
	}
}

func isRuleName(s string) bool { return len(s) <= 64 && strings.Trim(s, alphanumerics+"._-") == "" }
