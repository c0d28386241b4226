package rule

import (
	"testing"

	"optimist/internal/wire"
)

func TestDocumentsHaveTheStampOfTheRuleThatTakesThemWhole(t *testing.T) {
	_, s := compiled(t, `rules:
- {name: updates, match: {index: [shop, "by-update-*"], ops: [update]}, base: {stamp: _u}}
- {name: plain, match: {index: [shop-plain]}}
- {name: ours, match: {index: ["shop*"], headers: {X-Tenant: acme}}}
- {name: shop, match: {index: ["shop*", "-shop-old"]}, base: {stamp: _rev}}
- {name: hidden, match: {index: [".hidden"]}, base: {stamp: _rev}}
- {name: rest}
`)
	acme := []wire.Field{{Name: []byte("x-tenant"), Value: []byte("acme")}}
	for _, c := range []struct {
		asked Target
		want  string
	}{
		{Target{Index: "shop"}, "shop"}, // whoever writes it whole goes by the rule that takes that
		{Target{Index: "shop", Fields: acme}, ""},
		{Target{Index: "by-update-1"}, ""}, // written whole, a document of it goes by the last rule
		{Target{Index: "shop-plain"}, ""},
		{Target{Index: "shop-old"}, ""},
		{Target{Index: "shop-2"}, "shop"},
		{Target{Index: "store", Concrete: "shop-2"}, "shop"},
		{Target{Index: "other"}, ""},
		{Target{Index: ".hidden"}, "hidden"},
	} {
		got := ""
		if r := s.Stamper(&c.asked); r != nil {
			got = r.Name
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.asked, got, c.want)
		}
	}
}

func TestStampsOfAnAliasAreLookedForWhereThereCanBeAny(t *testing.T) {
	_, s := compiled(t, "rules:\n- {name: plain, match: {index: [plain]}}\n- {name: shop, match: {index: [\"shop-*\", \"-shop-old\"]}, base: {stamp: _rev}}\n- {name: rest}\n")
	for index, want := range map[string]bool{"store": true, "shop-1": false, "shop-old": false, "plain": false} {
		if got := s.StampsElsewhere(&Target{Index: index}); got != want {
			t.Errorf("%s: %v", index, got)
		}
	}
	if _, s = compiled(t, "rules:\n- {name: shop, match: {index: [shop]}}\n- {name: rest, base: {stamp: _rev}}\n"); s.StampsElsewhere(&Target{Index: "store"}) {
		t.Error("a rule that names no index has no other names")
	}
}

func TestSearchesThatMayFindStampedDocumentsAreKnown(t *testing.T) {
	_, s := compiled(t, "rules:\n- {name: shop, match: {index: [\"shop-*\", .hidden]}, base: {stamp: _rev}}\n- {name: rest}\n")
	for expression, want := range map[string]bool{
		"": true, "_all": true, "*": true, "shop-1": true, "other,shop-1": true, "s*": true, "*-1": true, "-other": true, ".hid*": true,
		"other": false, "other,more": false, "o*": false, "shop": false,
	} {
		if got := s.MayStamp(&Target{Index: expression}); got != want {
			t.Errorf("%q: %v", expression, got)
		}
	}
	_, none := compiled(t, "rules:\n- {name: rest}\n")
	if none.Stamps() || none.MayStamp(&Target{}) || none.Stamper(&Target{Index: "shop-1"}) != nil {
		t.Error("stamps where no rule has any")
	}
}
