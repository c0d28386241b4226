package rewrite

// removeEmpty takes away what is empty at p, and below it, from the bottom up. The document itself stays.
func (a *application) removeEmpty(p slot) error {
	if p.it == nil {
		return nil
	}
	empty, err := a.prune(p.it.v)
	if err != nil || !empty || p.parent == nil {
		return err
	}
	return a.remove(p)
}

// prune takes away what is empty below v, and reports whether v is empty then.
func (a *application) prune(v *value) (empty bool, err error) {
	if !v.open {
		if err := a.spend(len(v.t.raw(v.node))); err != nil {
			return false, err
		}
		if !v.t.holdsEmpty(v.node) {
			return v.t.isEmpty(v.node), nil
		}
	}
	v.expand(&a.memory)
	if v.kind == kindArray {
		return a.pruneElements(v)
	}
	goes := a.lists.alloc(len(v.items))[:0]
	for _, it := range v.items {
		if it.gone || it.hidden {
			continue
		}
		empty, err := a.prune(it.v)
		if err != nil {
			return false, err
		}
		if empty {
			goes = append(goes, it)
		}
	}
	for _, it := range goes {
		a.changed = true
		v.removeMember(it)
	}
	return v.live == 0, nil
}

func (a *application) pruneElements(v *value) (empty bool, err error) {
	kept := v.items[:0]
	for _, it := range v.items {
		empty, err := a.prune(it.v)
		if err != nil {
			return false, err
		}
		if !empty {
			kept = append(kept, it)
		}
	}
	if len(kept) < len(v.items) {
		a.changed = true
		clear(v.items[len(kept):])
		v.items, v.live = kept, len(kept)
	}
	return v.live == 0, nil
}

// isEmpty reports whether value i is null, "", [] or {}.
func (t *tree) isEmpty(i int32) bool {
	n := &t.nodes[i]
	switch n.kind {
	case kindNull:
		return true
	case kindString:
		return n.end-n.start == int32(len(`""`))
	case kindArray, kindObject:
		return n.skip == i+1
	}
	return false
}

// holdsEmpty reports whether something below value i is empty.
func (t *tree) holdsEmpty(i int32) bool {
	for c := i + 1; c < t.nodes[i].skip; c++ {
		if t.isEmpty(c) {
			return true
		}
	}
	return false
}
