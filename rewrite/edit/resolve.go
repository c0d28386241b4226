package edit

import (
	"strconv"
	"unicode/utf8"

	"optimist/rewrite/tree"
)

// resolve looks up the value of the step; nothing is what isn't there.
func (r *run) resolve() error {
	v := &r.s.Value
	switch {
	case r.s.readsClock():
		r.val = r.clock()
		return nil
	case v.Source == FromLiteral:
		r.val = r.s.literal
		return nil
	case v.Source.isDocument():
		return r.lookUp()
	}
	text, ok := r.text(v)
	if !ok {
		return nil
	}
	if !utf8.ValidString(text) {
		return r.fail("value", r.s.Path, v.Source.String()+" "+cut(v.Name, maxShown)+" is not UTF-8")
	}
	r.buf = tree.AppendString(r.buf[:0], text)
	r.val = r.made(r.buf)
	return nil
}

// text is what the request says of itself.
func (r *run) text(v *Value) (text string, ok bool) {
	switch v.Source {
	case FromID:
		return r.in.ID, r.in.ID != "" // else the engine is to give it one
	case FromIndex:
		return r.in.Index, true
	case FromUser:
		return r.in.User, r.in.User != ""
	}
	if r.in.Header == nil {
		return "", false
	}
	field, ok := r.in.Header(v.Name)
	return string(field), ok
}

func (r *run) clock() tree.Value {
	switch now := r.in.Now; r.s.Format {
	case formatMillis:
		r.buf = strconv.AppendInt(r.buf[:0], now.UnixMilli(), 10)
	case formatSecond:
		r.buf = strconv.AppendInt(r.buf[:0], now.Unix(), 10)
	default:
		r.buf = now.UTC().AppendFormat(r.buf[:0], `"2006-01-02T15:04:05.000Z"`)
	}
	return r.made(r.buf)
}

// lookUp finds the value of a path in one of the documents, which is read when it is first asked for.
func (r *run) lookUp() error {
	source := r.s.Value.Source
	if !r.sources[source].Exists() {
		doc := [...][]byte{FromIncoming: r.in.Incoming, FromCurrent: r.in.Current, FromBase: r.in.Base}[source]
		if doc == nil {
			return nil
		}
		t := r.newTree()
		if err := t.Parse(doc, r.limits); err != nil {
			return err
		}
		r.sources[source] = t.Root()
	}
	v := r.sources[source]
	for _, token := range r.s.value {
		if v.Kind() == tree.Array {
			if err := r.spend(v.Len()); err != nil { // its elements are counted off
				return err
			}
			at, reason := arrayIndex(token, v.Len())
			if reason != "" {
				return nil
			}
			v = v.Element(at)
			continue
		}
		v = v.Get(token)
	}
	r.val = v
	return nil
}
