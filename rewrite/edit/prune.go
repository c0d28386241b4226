package edit

import (
	"slices"

	"optimist/rewrite/tree"
)

// removeEmpty takes away what is empty at p, and below it, from the bottom up. The document itself stays.
func (r *run) removeEmpty(p slot) error {
	if p.it == nil {
		return nil
	}
	empty, err := r.prune(p.it.node)
	if err != nil || !empty || p.parent == nil {
		return err
	}
	return r.remove(p)
}

// prune takes away what is empty below n, and reports whether n is empty then.
func (r *run) prune(n *node) (empty bool, err error) {
	if !n.open {
		if err := r.spend(len(n.was.Raw())); err != nil {
			return false, err
		}
		if !n.was.Any(tree.Value.IsEmpty) {
			return n.was.IsEmpty(), nil
		}
	}
	n.expand(&r.editor)
	goes := r.lists.Alloc(len(n.items))[:0]
	for _, it := range n.items {
		if !it.visible() {
			continue
		}
		empty, err := r.prune(it.node)
		if err != nil {
			return false, err
		}
		if empty {
			goes = append(goes, it)
		}
	}
	r.changed = r.changed || len(goes) > 0
	for _, it := range goes {
		n.remove(it)
	}
	if n.kind == tree.Array && n.gone > 0 {
		n.items, n.gone = slices.DeleteFunc(n.items, func(it *item) bool { return it.gone }), 0
	}
	return n.live == 0, nil
}
