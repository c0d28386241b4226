package api

import (
	"strconv"

	"optimist/internal/doc"
	"optimist/internal/jsontext"
	"optimist/internal/uri"
)

// GuardParams are the parameters of a client's own guard. none are the values that they have where there is none: libraries send
// them.
var (
	GuardParams = []string{"if_seq_no", "if_primary_term", "version", "version_type"}
	none        = [...]string{"-2", "0", "-3", "internal"}
)

// OwnGuard reads the client's own guard: if_seq_no and if_primary_term, or version. found without numbers is a version. A parameter that
// asks for no guard isn't found: with it the engine writes in any case.
func OwnGuard(query []byte) (n doc.Numbers, found bool) {
	if n, found = ReadGuard(query); !found || n.Known() {
		return n, found
	}
	for i, name := range GuardParams {
		v, given := uri.Param(query, name)
		if v, err := uri.DecodeValue(nil, v); given && (err != nil || string(v) != none[i]) {
			return n, true
		}
	}
	return n, false
}

// ReadGuard reads if_seq_no and if_primary_term; found says that these, or a version, are there.
func ReadGuard(query []byte) (n doc.Numbers, found bool) {
	seq, ok1 := uri.Param(query, "if_seq_no")
	term, ok2 := uri.Param(query, "if_primary_term")
	_, version := uri.Param(query, "version")
	_, versionType := uri.Param(query, "version_type")
	if !ok1 && !ok2 && !version && !versionType {
		return n, false
	}
	s, err1 := strconv.ParseInt(string(seq), 10, 64)
	t, err2 := strconv.ParseInt(string(term), 10, 64)
	if err1 == nil && err2 == nil && s >= 0 && !version { // the engine refuses numbers below zero
		n = doc.Numbers{SeqNo: s, PrimaryTerm: t}
	}
	return n, true
}

// GuardsItself reports whether the body of an _update has if_seq_no or if_primary_term. OpenSearch takes them there, and doesn't try such
// an _update again.
func GuardsItself(update []byte) bool {
	for s := jsontext.Scan(update); s.Next(); {
		if s.IsObject() && (s.Named("if_seq_no") || s.Named("if_primary_term")) {
			return true
		}
	}
	return false
}
