package catalog

import "optimist/internal/session"

// An alias can be moved around the proxy, and a name that was an index's can become an alias. The engine's answers show it: they name the
// index that the document is in.

// Shown notes that an answer to a request by the name (decoded) is of that index (concrete). If the name stood for another one alone, it
// has been moved: what is known of it is void, and the engine is asked before the next write. Shown reports whether that is so.
func (c *Catalog) Shown(realm session.Credentials, name, index string) (moved bool) {
	e, found := c.names.Get(nameKey{name, realm})
	if !found || index == "" {
		return false
	}
	a := e.index.last.Load()
	if a == nil || !a.value.Exists() || a.value.Name == index || a.value.Shared || a.value.Pipeline || a.value.DataStream != "" {
		return false
	}
	c.void(e, a)
	return true
}

// Void has the engine asked what the name (decoded) stands for, before that is needed again: an answer doesn't fit what is known of it.
func (c *Catalog) Void(realm session.Credentials, name string) {
	if e, found := c.names.Get(nameKey{name, realm}); found {
		c.void(e, e.index.last.Load())
	}
}

// void drops an answer, but for the index that it named. Whoever has asked meanwhile has a younger one.
func (c *Catalog) void(e *entry, a *answer[Index]) {
	if a != nil && e.index.last.CompareAndSwap(a, &answer[Index]{value: Index{Before: former(a.value)}}) {
		e.several.Store(nil)
		e.whole.last.Store(nil)
	}
}

// former is the index that is the former one once the name stands for another.
func former(ix Index) string {
	if ix.Exists() {
		return ix.Name
	}
	return ix.Before
}

// formerOf is the index for which the name stood before it stood for the index is. last is the last answer, or nil.
func formerOf(last *answer[Index], is string) string {
	switch {
	case last == nil:
		return ""
	case last.value.Exists() && last.value.Name == is:
		return last.value.Before
	case former(last.value) == is:
		return ""
	}
	return former(last.value)
}
