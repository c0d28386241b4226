package tree

// A Value is one value of a document: the zero Value is one that isn't there.
type Value struct {
	t *Tree
	i int32
}

// Exists reports whether the value is there.
func (v Value) Exists() bool { return v.t != nil }

// Kind returns what the value is; Missing if it isn't there.
func (v Value) Kind() Kind {
	if v.t == nil {
		return Missing
	}
	return v.t.nodes[v.i].kind
}

// Raw returns the value's bytes as they stand in the document, nil if it isn't there.
func (v Value) Raw() []byte {
	if v.t == nil {
		return nil
	}
	n := &v.t.nodes[v.i]
	return v.t.src[n.start:n.end]
}

// Span is where in the document the value is.
func (v Value) Span() (start, end int) {
	n := &v.t.nodes[v.i]
	return int(n.start), int(n.end)
}

// Outer is Span, of a member from the beginning of its key.
func (v Value) Outer() (start, end int) {
	n := &v.t.nodes[v.i]
	if n.keyEnd != 0 {
		return int(n.key), int(n.end)
	}
	return int(n.start), int(n.end)
}

// Member returns the bytes of a member: key and value with what is between them. For anything else it returns the value.
func (v Value) Member() []byte {
	start, end := v.Outer()
	return v.t.src[start:end]
}

// KeyAndColon returns the bytes of a member before its value.
func (v Value) KeyAndColon() []byte {
	n := &v.t.nodes[v.i]
	return v.t.src[n.key:n.start]
}

// IsMember reports whether the value is a member of an object.
func (v Value) IsMember() bool { return v.t.nodes[v.i].keyEnd != 0 }

// KeyLen is how many bytes a member's key takes in the document, with its quotes.
func (v Value) KeyLen() int {
	n := &v.t.nodes[v.i]
	return int(n.keyEnd - n.key)
}

// Source returns the bytes of the document that the value is in.
func (v Value) Source() []byte { return v.t.src }

// Height is 0 for what is no container, 1 for one that is empty, or has no other in it.
func (v Value) Height() int { return int(v.t.nodes[v.i].height) }

// Size is how many values v is, with all that is in it.
func (v Value) Size() int { return int(v.t.nodes[v.i].skip - v.i) }

// Len is the number of elements, or of members, of which duplicates count once.
func (v Value) Len() int {
	if v.t == nil {
		return 0
	}
	v.prepare()
	return int(v.t.nodes[v.i].count)
}

// First returns the first child that isn't hidden, or nothing.
func (v Value) First() Value {
	if !v.Kind().IsContainer() {
		return Value{}
	}
	v.prepare()
	c := v.FirstOfAll()
	if c.t != nil && c.Hidden() {
		return c.Next()
	}
	return c
}

// Next returns the sibling after v that isn't hidden, or nothing.
func (v Value) Next() Value {
	for v = v.NextOfAll(); v.t != nil && v.Hidden(); v = v.NextOfAll() {
	}
	return v
}

// FirstOfAll is First with the hidden ones.
func (v Value) FirstOfAll() Value {
	if v.t == nil || !v.t.nodes[v.i].kind.IsContainer() || v.t.nodes[v.i].skip == v.i+1 {
		return Value{}
	}
	return Value{v.t, v.i + 1}
}

// NextOfAll is Next with the hidden ones.
func (v Value) NextOfAll() Value {
	if v.t == nil || v.t.nodes[v.i].flags&flagLast != 0 {
		return Value{}
	}
	return Value{v.t, v.t.nodes[v.i].skip}
}

// Hidden reports whether a later member with the same key hides v. It is known once somebody has looked for a member of the object,
// or asked for its First or its Len.
func (v Value) Hidden() bool { return v.t.nodes[v.i].flags&flagHidden != 0 }

// Any reports whether something holds for any value below v.
func (v Value) Any(holds func(Value) bool) bool {
	for c := v.i + 1; c < v.t.nodes[v.i].skip; c++ {
		if holds(Value{v.t, c}) {
			return true
		}
	}
	return false
}

// IsEmpty reports whether v is null, "", [] or {}.
func (v Value) IsEmpty() bool {
	n := &v.t.nodes[v.i]
	switch n.kind {
	case Null:
		return true
	case String:
		return n.end-n.start == int32(len(`""`))
	case Array, Object:
		return n.skip == v.i+1
	}
	return false
}

// Leaves counts the values in v, with v itself, that aren't containers, or are empty ones. A missing value has none.
func (v Value) Leaves() int {
	if v.t == nil {
		return 0
	}
	n := 0
	for c := v.First(); c.Exists(); c = c.Next() {
		n += c.Leaves()
	}
	return max(n, 1)
}

// Get returns the member of an object that has the name, or nothing; of several the last.
func (v Value) Get(name string) Value {
	if v.Kind() != Object {
		return Value{}
	}
	v.prepare()
	return v.at(v.t.find(v.i, []byte(name), false))
}

func (v Value) at(i int32) Value {
	if i == none {
		return Value{}
	}
	return Value{v.t, i}
}

// AppendElements appends the elements of an array; of anything else there are none.
func (v Value) AppendElements(list []Value) []Value {
	if v.Kind() != Array {
		return list
	}
	t := v.t
	for c := v.i + 1; c < t.nodes[v.i].skip; c = t.nodes[c].skip {
		list = append(list, Value{t, c})
	}
	return list
}

// Element returns element n of an array, or nothing. It counts them off.
func (v Value) Element(n int) Value {
	if v.Kind() != Array || n < 0 || n >= v.Len() {
		return Value{}
	}
	c := v.First()
	for ; n > 0; n-- {
		c = c.Next()
	}
	return c
}

// A Finder looks up the members of one object by the keys of others. It is fastest where those come in the object's own order: documents
// that are compared mostly have their keys in one order. A look-up takes as long however many members are hidden.
type Finder struct {
	object Value
	next   Value // behind the member that was found last; it may be hidden
}

// Finder returns one for an object; of what is none it finds nothing.
func (v Value) Finder() Finder {
	if v.Kind() != Object {
		return Finder{}
	}
	v.prepare()
	return Finder{v, v.FirstOfAll()}
}

// Like returns the member with the key of m, or nothing; of several the last.
func (f *Finder) Like(m Value) Value {
	t := f.object.t
	if t == nil {
		return Value{}
	}
	key, esc := m.t.keyText(m.i)
	c := f.next
	if c.t == nil || c.Hidden() || !t.keyIs(c.i, key, esc) {
		c = f.object.at(t.find(f.object.i, key, esc))
	}
	if c.t != nil {
		f.next = c.NextOfAll()
	}
	return c
}

// Text returns the content of a string.
func (v Value) Text() string {
	text, esc := v.text()
	return string(content(nil, text, esc))
}

// Key returns the content of a member's key.
func (v Value) Key() string {
	key, esc := v.t.keyText(v.i)
	return string(content(nil, key, esc))
}

// KeyIs reports whether a member has the name.
func (v Value) KeyIs(name string) bool {
	key, esc := v.t.keyText(v.i)
	return !esc && name == string(key) || esc && sameText([]byte(name), false, key, esc)
}
