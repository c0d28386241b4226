package quota

import "container/heap"

// Account is how much somebody holds, and its place among the Accounts that it is in. Embed it.
type Account struct {
	size  int64
	place int
}

// Size is how much is held.
func (a *Account) Size() int64 { return a.size }

func (a *Account) account() *Account { return a }

// Member has an Account.
type Member interface{ account() *Account }

// Accounts are the accounts of several members, which are asked for the largest. The zero value has none. It is for one goroutine at a
// time.
type Accounts[H Member] struct{ list bySize[H] }

// Len is how many members there are.
func (a *Accounts[H]) Len() int { return len(a.list) }

// All are the members, the largest first, and the others in any order. The slice must not be changed, nor kept.
func (a *Accounts[H]) All() []H { return a.list }

// Add adds a member, which must be in no Accounts.
func (a *Accounts[H]) Add(h H) { heap.Push(&a.list, h) }

// Remove removes a member that is in these Accounts. What it holds stays as it is.
func (a *Accounts[H]) Remove(h H) { heap.Remove(&a.list, h.account().place) }

// Charge adds to what a member holds that is in these Accounts.
func (a *Accounts[H]) Charge(h H, by int64) {
	if c := h.account(); by != 0 {
		c.size += by
		heap.Fix(&a.list, c.place)
	}
}

// Largest is the member that holds most; ok is false if there are none.
func (a *Accounts[H]) Largest() (h H, ok bool) {
	if len(a.list) == 0 {
		return h, false
	}
	return a.list[0], true
}

// Second is the member that holds most after the largest; ok is false if there are fewer than two.
func (a *Accounts[H]) Second() (h H, ok bool) {
	switch {
	case len(a.list) < 2:
		return h, false
	case len(a.list) > 2 && a.list.Less(2, 1):
		return a.list[2], true
	}
	return a.list[1], true
}

// bySize is a heap, with the largest first.
type bySize[H Member] []H

func (s bySize[H]) Len() int           { return len(s) }
func (s bySize[H]) Less(i, j int) bool { return s[i].account().size > s[j].account().size }

func (s bySize[H]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].account().place, s[j].account().place = i, j
}

func (s *bySize[H]) Push(h any) {
	added := h.(H) //nolint:forcetypeassert // only members are pushed
	added.account().place = len(*s)
	*s = append(*s, added)
}

func (s *bySize[H]) Pop() any {
	last := len(*s) - 1
	h := (*s)[last]
	clear((*s)[last:])
	*s = (*s)[:last]
	return h
}
