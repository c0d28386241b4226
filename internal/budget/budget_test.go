package budget

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func at(address string, credentials byte) Owner {
	return Owner{Address: netip.MustParseAddr(address), Credentials: [16]byte{credentials}}
}

func account(b *Budget, o Owner) *Account {
	a := new(Account)
	a.Open(b, func() Owner { return o })
	return a
}

// fill takes pieces until there is no more, and returns how many bytes that were beyond those that are free.
func fill(a *Account) (n int64) {
	_ = a.Take(Free)
	for a.Take(1) == nil {
		n++
	}
	return n
}

func TestSmallRequestsNeedNothing(t *testing.T) {
	a := new(Account)
	a.Open(New(Options{}), func() Owner { t.Error("asked who it is"); return Owner{} })
	if err := a.Take(Free); err != nil {
		t.Error(err)
	}
	a.End()
	if err := a.Take(Free); err != nil {
		t.Errorf("after the end of the request before: %v", err)
	}
	var none *Account
	if err := none.Take(1 << 40); err != nil || none.Mark() != 0 {
		t.Error(err)
	}
	none.Cut(0)
	if Of(Detached(With(t.Context(), a))) != nil || Of(With(t.Context(), a)) != a || Of(context.Background()) != nil {
		t.Error("the context has another account")
	}
}

// However many have come before, and whatever they hold, who comes next finds something, and none of them takes all.
func TestAClientThatComesLateFindsSomething(t *testing.T) {
	for name, owner := range map[string]func(n int) Owner{
		"other credentials":        func(n int) Owner { return at("10.0.0.1", byte(n+1)) },
		"another address":          func(n int) Owner { return at(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}).String(), 0) },
		"another network, by IPv6": func(n int) Owner { return at(netip.AddrFrom16([16]byte{0xfd, 7: byte(n), 15: 1}).String(), 0) },
		"an IPv4 address in an IPv6": func(n int) Owner {
			return at("::ffff:10.0.0."+netip.AddrFrom4([4]byte{0, 0, 0, byte(n)}).String()[6:], 0)
		},
	} {
		b := New(Options{Limit: 1 << 16})
		held := fill(account(b, owner(0)))
		if held != b.Limit()/2 {
			t.Errorf("%s: alone it holds %d of %d", name, held, b.Limit())
		}
		for n := 1; n < 4; n++ {
			if held = fill(account(b, owner(n))); held == 0 {
				t.Errorf("%s: client %d finds nothing", name, n+1)
			}
		}
	}
}

func TestOneMachineWithManyNamesLeavesOthersTheirPart(t *testing.T) {
	for name, owner := range map[string]func(n int) Owner{
		"credentials":    func(n int) Owner { return at("10.0.0.1", byte(n)) },
		"IPv6 addresses": func(n int) Owner { return at(netip.AddrFrom16([16]byte{0xfd, 15: byte(n)}).String(), 0) },
	} {
		b := New(Options{Limit: 1 << 16})
		var held int64
		for n := range 200 {
			held += fill(account(b, owner(n)))
		}
		if held > b.Limit()*2/3+1 {
			t.Errorf("%s: it holds %d of %d", name, held, b.Limit())
		}
		if n := fill(account(b, at("192.0.2.1", 7))); n < b.Limit()/7 {
			t.Errorf("%s: another finds %d of %d", name, n, b.Limit())
		}
	}
}

func TestWhatIsRefusedIsNotTaken(t *testing.T) {
	var refused []Owner
	b := New(Options{Limit: 100, Refused: func(o Owner) { refused = append(refused, o) }})
	a := account(b, at("10.0.0.1", 1))
	if err := a.Take(Free + 51); !errors.Is(err, ErrTooMuch) {
		t.Errorf("%v", err)
	}
	other := account(b, at("10.0.0.1", 1))
	if err := other.Take(Free + 1); err != nil {
		t.Error(err)
	}
	if err := a.Take(Free + 50); !errors.Is(err, ErrOverloaded) {
		t.Errorf("%v", err)
	}
	other.End()
	if b.Used() != 0 || a.Mark() != 0 || len(refused) != 1 || refused[0] != at("10.0.0.1", 1) || refused[0].Anonymous() {
		t.Errorf("%d are taken, refused: %v", b.Used(), refused)
	}
	if err := a.Take(Free + 50); err != nil || b.Used() != 50 {
		t.Errorf("%v, %d are taken", err, b.Used())
	}
	mark := a.Mark()
	if err := a.Take(1); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
	a.Cut(mark - 10)
	if b.Used() != 40 {
		t.Errorf("%d are taken", b.Used())
	}
	a.End()
	a.End()
	if b.Used() != 0 || len(b.owners)+len(b.networks) != 0 {
		t.Errorf("%d are taken by %v %v", b.Used(), b.owners, b.networks)
	}
}

// Whatever requests do, in whatever order, the budget has what they hold, and all of it back at the end.
func TestNothingIsLeftBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(Options{Limit: 1 << 20})
		accounts := make([]*Account, 5)
		for i := range accounts {
			accounts[i] = account(b, at("10.0.0.1", byte(i/2)))
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			a := accounts[rapid.IntRange(0, 4).Draw(t, "account")]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				_ = a.Take(rapid.Int64Range(-1, 1<<18).Draw(t, "bytes"))
			case 2:
				a.Cut(rapid.Int64Range(0, 1<<18).Draw(t, "mark"))
			case 3:
				a.End()
			}
			var held int64
			for _, a := range accounts {
				held += max(a.taken.Load()-Free, 0)
			}
			if b.Used() != held || held > b.Limit() {
				t.Fatalf("%d are taken, %d are held", b.Used(), held)
			}
		}
		for _, a := range accounts {
			a.End()
		}
		if b.Used() != 0 || len(b.owners)+len(b.networks) != 0 {
			t.Fatalf("%d are left, of %v %v", b.Used(), b.owners, b.networks)
		}
	})
}

func TestManyGoroutinesShareABudget(t *testing.T) {
	b := New(Options{Limit: 1 << 20, Refused: func(Owner) {}})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			a := account(b, at("10.0.0.1", byte(i)))
			for range 1000 {
				_ = a.Take(1 << 16)
				_ = a.Take(1 << 14)
				a.End()
			}
		})
	}
	wg.Wait()
	if b.Used() != 0 {
		t.Errorf("%d are left", b.Used())
	}
}

func BenchmarkSmallRequest(b *testing.B) {
	a := account(New(Options{Limit: 1 << 30}), Owner{})
	for b.Loop() {
		_ = a.Take(4 << 10)
		a.End()
	}
}

func BenchmarkLargeRequest(b *testing.B) {
	a := account(New(Options{Limit: 1 << 30}), at("10.0.0.1", 1))
	for b.Loop() {
		_ = a.Take(1 << 20)
		a.End()
	}
}

func TestPartsAreTakenFromTheWhole(t *testing.T) {
	b := New(Options{Limit: 1000})
	whole := account(b, at("10.0.0.1", 1))
	ctx := With(t.Context(), whole)
	if err := whole.Take(Free + 100); err != nil {
		t.Fatal(err)
	}
	inner, one := Part(ctx)
	_, other := Part(ctx)
	mark := one.Mark()
	if err := errors.Join(one.Take(100), other.Take(200)); err != nil || b.Used() != 400 || Of(inner) != one {
		t.Errorf("%v, %d are taken", err, b.Used())
	}
	if err := other.Take(101); !errors.Is(err, ErrTooMuch) || b.Used() != 400 {
		t.Errorf("%v, %d are taken", err, b.Used())
	}
	if one.Cut(mark); b.Used() != 300 {
		t.Errorf("%d are taken", b.Used())
	}
	other.End()
	one.End()
	if b.Used() != 100 {
		t.Errorf("%d are taken", b.Used())
	}
	whole.End()
	if b.Used() != 0 {
		t.Errorf("%d are left", b.Used())
	}
	if c, none := Part(t.Context()); c != t.Context() || none != nil || none.Take(1<<40) != nil {
		t.Error("a part of nothing is limited")
	}
}
