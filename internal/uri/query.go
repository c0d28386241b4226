package uri

import (
	"bytes"
	"unicode/utf8"
)

// Param returns the raw, undecoded value of a query parameter, and whether it is there. The last one counts. Pairs end at
// an ampersand or a semicolon, and names may be percent-encoded, as the engines read them.
func Param(query []byte, name string) (value []byte, ok bool) {
	for len(query) > 0 {
		var p pair
		p, query = nextPair(query)
		if p.is(name) {
			value, ok = p.value, true
		}
	}
	return value, ok
}

// Without appends the query to dst without the named parameters, all other bytes kept.
func Without(dst, query []byte, names ...string) []byte { return appendPairs(dst, query, names, false) }

// Only appends the named parameters of the query to dst, their bytes kept.
func Only(dst, query []byte, names ...string) []byte { return appendPairs(dst, query, names, true) }

// WithParams is a target, or a path, with more parameters behind those that it has. It keeps the bytes of both.
func WithParams(target, params []byte) []byte {
	if len(params) == 0 {
		return target
	}
	sep := byte('?')
	if bytes.IndexByte(target, sep) >= 0 {
		sep = '&'
	}
	return append(append(target[:len(target):len(target)], sep), params...)
}

func appendPairs(dst, query []byte, names []string, named bool) []byte {
	start := len(dst)
	for len(query) > 0 {
		var p pair
		p, query = nextPair(query)
		if len(p.raw) == 0 || p.isAny(names) != named {
			continue
		}
		if len(dst) > start {
			dst = append(dst, '&')
		}
		dst = append(dst, p.raw...)
	}
	return dst
}

// pair is one parameter as it stands in a query.
type pair struct{ raw, key, value []byte }

func nextPair(query []byte) (p pair, rest []byte) {
	name, end, eq := 0, len(query), -1
	for i, c := range query {
		if c == '&' || c == ';' {
			end, rest = i, query[i+1:]
			break
		}
		switch {
		case c != '=' || eq >= 0:
		case i == name: // before the name: the engines take no heed of it
			name++
		default:
			eq = i
		}
	}
	p.raw = query[:end]
	if eq < 0 {
		p.key = query[name:end]
		return p, rest
	}
	p.key, p.value = query[name:eq], query[eq+1:end]
	return p, rest
}

func (p pair) is(name string) bool {
	if string(p.key) == name {
		return true
	}
	for _, c := range p.key {
		if c == '%' {
			var buf [64]byte
			key, err := DecodeValue(buf[:0], p.key)
			return err == nil && string(key) == name
		}
	}
	return false
}

func (p pair) isAny(names []string) bool {
	for _, n := range names {
		if p.is(n) {
			return true
		}
	}
	return false
}

// EachParam goes through the parameters of a query in their order, decoded as by DecodeValue, until yield returns false. It takes no memory
// for those without escapes. Malformed escapes are its error.
func EachParam(query []byte, yield func(name, value []byte) bool) error {
	for len(query) > 0 {
		var p pair
		if p, query = nextPair(query); len(p.raw) == 0 {
			continue
		}
		for _, text := range [...]*[]byte{&p.key, &p.value} {
			if plain(*text) {
				continue
			}
			decoded, err := DecodeValue(nil, *text)
			if err != nil {
				return err
			}
			*text = decoded
		}
		if !yield(p.key, p.value) {
			return nil
		}
	}
	return nil
}

// plain reports whether text stands for itself.
func plain(text []byte) bool {
	for _, c := range text {
		if c == '%' || c == '+' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Pair is one parameter of a query, decoded.
type Pair struct{ Name, Value string }

// Pairs returns the parameters of a query in their order. decode is DecodeValue or UnescapeValue. Malformed escapes are its
// error: a parameter that was left out would mean the default, which its sender didn't ask for.
func Pairs(query []byte, decode func(dst, raw []byte) ([]byte, error)) ([]Pair, error) {
	var all []Pair
	for len(query) > 0 {
		var p pair
		if p, query = nextPair(query); len(p.raw) == 0 {
			continue
		}
		name, err := decode(nil, p.key)
		if err != nil {
			return nil, err
		}
		value, err := decode(nil, p.value)
		if err != nil {
			return nil, err
		}
		all = append(all, Pair{string(name), string(value)})
	}
	return all, nil
}
