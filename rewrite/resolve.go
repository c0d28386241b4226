package rewrite

import "unicode/utf8"

// resolve looks up the value of the step.
func (a *application) resolve() error {
	v := &a.s.Value
	text := ""
	switch {
	case a.s.readsClock():
		a.val = a.clock()
		return nil
	case v.Source == FromLiteral:
		a.val = reference{&a.s.literal, 0}
		return nil
	case v.Source.isDocument():
		return a.lookUp()
	case v.Source == FromID:
		if text = a.in.ID; text == "" {
			return nil // the engine is to give it one
		}
	case v.Source == FromIndex:
		text = a.in.Index
	case v.Source == FromUser:
		if text = a.in.User; text == "" {
			return nil
		}
	case v.Source == FromHeader:
		if a.in.Header == nil {
			return nil
		}
		field, ok := a.in.Header(v.Name)
		if !ok {
			return nil
		}
		text = string(field)
	}
	if !utf8.ValidString(text) {
		return a.fail("value", a.s.Path, v.Source.String()+" "+v.Name+" is not UTF-8")
	}
	a.buf = appendString(a.buf[:0], text)
	a.val = a.reference(kindString, a.buf)
	return nil
}

func (a *application) reference(k kind, text []byte) reference {
	v := a.scalar(k, text)
	return reference{v.t, v.node}
}

func (a *application) clock() reference {
	switch now := a.in.Now; a.s.Format {
	case formatMillis:
		a.buf = appendInt(a.buf[:0], now.UnixMilli())
	case formatSecond:
		a.buf = appendInt(a.buf[:0], now.Unix())
	default:
		a.buf = now.UTC().AppendFormat(a.buf[:0], `"2006-01-02T15:04:05.000Z"`)
		return a.reference(kindString, a.buf)
	}
	return a.reference(kindNumber, a.buf)
}

// lookUp finds the value of a path in one of the documents, which is read when it is first asked for.
func (a *application) lookUp() error {
	source := a.s.Value.Source
	t := a.sources[source]
	if t == nil {
		doc := [...][]byte{FromIncoming: a.in.Incoming, FromCurrent: a.in.Current, FromBase: a.in.Base}[source]
		if doc == nil {
			return nil
		}
		t = a.tree()
		if err := t.parse(doc, a.limits); err != nil {
			return err
		}
		a.sources[source] = t
	}
	node := int32(0)
	for _, token := range a.s.value {
		if t.nodes[node].kind == kindArray {
			if err := a.spend(int(t.nodes[node].count)); err != nil { // its elements are counted off
				return err
			}
		}
		if node = t.childOf(node, token.text); node == none {
			return nil
		}
	}
	a.val = reference{t, node}
	return nil
}

// childOf returns the value in value i that a token of a path names, or none.
func (t *tree) childOf(i int32, token string) int32 {
	switch t.nodes[i].kind {
	case kindObject:
		return t.find(i, []byte(token), false, none)
	case kindArray:
		at, reason := arrayIndex(token, int(t.nodes[i].count))
		if reason != "" {
			return none
		}
		c := t.firstChild(i)
		for ; at > 0; at-- {
			c = t.nextChild(i, c)
		}
		return c
	}
	return none
}
