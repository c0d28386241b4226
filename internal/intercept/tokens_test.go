package intercept

import (
	"errors"
	"iter"
	"strconv"
	"strings"
	"testing"

	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/fencing"
)

// A bulk's items are short, and each that names a token has those of the whole besides: what that takes is taken from the request's memory.
func TestTokensOfItemsAreTakenFromTheBudget(t *testing.T) {
	const tokens, items = 900, 5
	var b strings.Builder
	for i := range tokens {
		b.WriteString(strconv.Itoa(i+1) + ",")
	}
	whole, err := fencing.Tokens(nil).With([]byte(b.String() + "1"))
	if err != nil {
		t.Fatal(err)
	}
	r := &request{tokens: whole}
	var room budget.Account
	room.Open(budget.New(budget.Options{Limit: 1 << 20}), func() budget.Owner { return budget.Owner{} })
	defer room.End()
	for i := range items {
		if _, err := r.tokensOf(&room, &bulk.Item{Token: "1000"}); err != nil {
			t.Fatal(err)
		}
		if least := int64((i + 1) * (tokens + 1) * 8); room.Mark() < least {
			t.Errorf("%d items have taken %d bytes, and hold at least %d", i+1, room.Mark(), least)
		}
	}
	held := room.Mark()
	if got, err := r.tokensOf(&room, &bulk.Item{}); err != nil || !got.Equal(whole) || room.Mark() != held {
		t.Errorf("an item without a token: %d tokens, %d bytes more, %v", len(got), room.Mark()-held, err)
	}
	for range 1 << 10 {
		if _, err = r.tokensOf(&room, &bulk.Item{Token: "1000"}); err != nil {
			break
		}
	}
	if !errors.Is(err, budget.ErrTooMuch) {
		t.Errorf("items without end: %v", err)
	}
}

// TestTokensThatAreLookedUpAreTakenFromTheBudget: a bulk of short items may name a great many. What is known of each while they are looked up
// is many times as long as its text.
func TestTokensThatAreLookedUpAreTakenFromTheBudget(t *testing.T) {
	const distinct = 3000
	var room budget.Account
	room.Open(budget.New(budget.Options{Limit: 1 << 20}), func() budget.Owner { return budget.Owner{} })
	defer room.End()
	name := func(n, times int) iter.Seq[string] {
		return func(yield func(string) bool) {
			for i := range n * times {
				if !yield(strconv.Itoa(1+i%n)) || i%100 == 0 && !yield("nonsense") {
					return
				}
			}
		}
	}
	all, err := gather(&room, name(distinct, 10))
	if held := room.Mark(); err != nil || len(all) != distinct || held != distinct*roomOfToken {
		t.Errorf("%d tokens, %d bytes, %v", len(all), held, err)
	}
	if _, err := gather(&room, name(10*distinct, 1)); !errors.Is(err, budget.ErrTooMuch) {
		t.Errorf("tokens without end: %v", err)
	}
}
