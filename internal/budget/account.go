package budget

import (
	"context"
	"sync"
	"sync/atomic"
)

// Account is what one request has taken. A connection has one for all its requests: End gives everything back, so that no request can
// leave anything behind, whatever way it ends. The nil Account takes nothing from anywhere. It is safe for concurrent use, as long as
// End comes last.
type Account struct {
	b         *Budget
	findOwner func() Owner
	whole     *Account // of which this one is a part: see Part; nil: it is taken from the budget

	taken atomic.Int64 // what the request holds, with what is free

	mu      sync.Mutex // locked while taken changes
	owner   Owner      // once charged isn't zero
	charged int64      // what of taken is taken from the budget
}

// Open makes the zero Account one of b. owner is called when a request takes more than is free, while that request is under way. A nil b
// has no limit.
func (a *Account) Open(b *Budget, owner func() Owner) { a.b, a.findOwner = b, owner }

// Take takes n bytes, or returns ErrOverloaded or ErrTooMuch and takes none. A negative n takes nothing.
func (a *Account) Take(n int64) error {
	if a == nil || a.b == nil && a.whole == nil || n <= 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.whole != nil {
		if err := a.whole.Take(n); err != nil {
			return err
		}
	} else if err := a.charge(a.taken.Load() + n - Free - a.charged); err != nil {
		return err
	}
	a.taken.Add(n)
	return nil
}

// charge takes n bytes from the budget.
func (a *Account) charge(n int64) error {
	if n <= 0 {
		return nil
	}
	if a.charged == 0 {
		a.owner = a.findOwner()
	}
	switch {
	case a.charged+n > a.b.Limit()/2:
		return ErrTooMuch
	case !a.b.take(a.owner, n):
		return ErrOverloaded
	}
	a.charged += n
	return nil
}

// Mark is how much the request holds now: see Cut.
func (a *Account) Mark() int64 {
	if a == nil {
		return 0
	}
	return a.taken.Load()
}

// Cut gives back what was taken since the mark. It is for work that is done several times, one after the other, with nobody else at work
// on the account meanwhile.
func (a *Account) Cut(mark int64) {
	if a == nil || a.taken.Load() <= mark { // most work takes nothing
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.give(max(a.taken.Load()-mark, 0))
}

// give gives n bytes back. It is called with mu locked.
func (a *Account) give(n int64) {
	a.taken.Add(-n)
	if a.whole != nil {
		a.whole.mu.Lock()
		defer a.whole.mu.Unlock()
		a.whole.give(n)
		return
	}
	if over := a.charged - max(a.taken.Load()-Free, 0); over > 0 {
		a.b.give(a.owner, over)
		a.charged -= over
	}
}

// End gives everything back. The Account is ready for the next request.
func (a *Account) End() { a.Cut(0) }

type key struct{}

// With returns a context for a request that takes its bytes from the account.
func With(ctx context.Context, a *Account) context.Context { return context.WithValue(ctx, key{}, a) }

// Of returns the account of the request that the context is for, or nil, from which everything can be taken.
func Of(ctx context.Context) *Account {
	a, _ := ctx.Value(key{}).(*Account)
	return a
}

// Part returns a context for a part of the request's work that is done beside other parts of it, with an account that is taken from the
// request's. End it.
func Part(ctx context.Context) (context.Context, *Account) {
	if Of(ctx) == nil {
		return ctx, nil
	}
	part := &Account{}
	return PartOf(ctx, part), part
}

// PartOf is Part for an account that is there already: nobody may use what it was before.
func PartOf(ctx context.Context, part *Account) context.Context {
	whole := Of(ctx)
	if whole == nil {
		return ctx
	}
	*part = Account{whole: whole}
	return With(ctx, part)
}

// Detached returns the context for work that outlives the request, and isn't taken from its account.
func Detached(ctx context.Context) context.Context { return With(ctx, nil) }
