package fencing

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"optimist/internal/wire"
)

func field(name, value string) wire.Field {
	return wire.Field{Name: []byte(name), Value: []byte(value)}
}

func TestTokensComeByFieldAndByQuery(t *testing.T) {
	for name, c := range map[string]struct {
		fields []wire.Field
		query  string
		want   Tokens
	}{
		"none":              {[]wire.Field{field("Accept", "7")}, "refresh=true", nil},
		"a field":           {[]wire.Field{field("Optimist-Lock-Token", "7")}, "", Tokens{7}},
		"in any case":       {[]wire.Field{field("OPTIMIST-LOCK-TOKEN", "7")}, "", Tokens{7}},
		"several":           {[]wire.Field{field("optimist-lock-token", "7, 8"), field("optimist-lock-token", "9,7")}, "", Tokens{7, 8, 9}},
		"the query":         {nil, "a=b&lock_token=1838340123853824", Tokens{1838340123853824}},
		"both":              {[]wire.Field{field("optimist-lock-token", "7")}, "lock_token=8%2C7", Tokens{7, 8}},
		"in any order":      {[]wire.Field{field("optimist-lock-token", "9, 7, 8, 7")}, "lock_token=1", Tokens{1, 7, 8, 9}},
		"one, many times":   {[]wire.Field{field("optimist-lock-token", strings.Repeat("7,", 5*mostTokens)+"7")}, "", Tokens{7}},
		"the largest":       {[]wire.Field{field("optimist-lock-token", "9007199254740991")}, "", Tokens{9007199254740991}},
		"as many as go":     {[]wire.Field{field("optimist-lock-token", numbers(mostTokens))}, "", nil},
		"not the whole one": {nil, "my_lock_token=7", nil},
	} {
		got, err := Read(c.fields, []byte(c.query))
		if name == "as many as go" && len(got) == mostTokens && err == nil {
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

func TestNonsenseIsNoToken(t *testing.T) {
	for _, text := range []string{"", " ", "x", "0", "-1", "7,", ",7", "7 8", "1.5", "1e3", "0x10", "9007199254740992", "99999999999999999999",
		"7;8", `"7"`, numbers(mostTokens + 1), numbers(10 * mostTokens)} {
		if got, err := Read([]wire.Field{field("Optimist-Lock-Token", text)}, nil); !errors.Is(err, ErrBad) || got != nil {
			t.Errorf("field %.40q: %v, %v", text, got, err)
		}
	}
	for _, query := range []string{"lock_token", "lock_token=", "lock_token=%zz", "lock_token=x"} {
		if got, err := Read(nil, []byte(query)); !errors.Is(err, ErrBad) || got != nil {
			t.Errorf("query %q: %v, %v", query, got, err)
		}
	}
}

func TestTokensAreComparedAsSets(t *testing.T) {
	read := func(text string) (t Tokens) {
		if text != "" {
			t, _ = t.With([]byte(text))
		}
		return t
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"", "", true}, {"1,2", "2,1", true}, {"1", "", false}, {"1", "2", false}, {"1,2", "2", false}} {
		if read(c.a).Equal(read(c.b)) != c.want {
			t.Errorf("%v and %v: want %v", c.a, c.b, c.want)
		}
	}
	one := Tokens{1}
	if two, err := one.With([]byte("2")); err != nil || !two.Equal(Tokens{1, 2}) || !one.Equal(Tokens{1}) {
		t.Errorf("%v, %v; was %v", two, err, one)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("7, 8", "lock_token=9")
	f.Fuzz(func(t *testing.T, value, query string) {
		got, err := Read([]wire.Field{field("Optimist-Lock-Token", value)}, []byte(query))
		if err != nil && got != nil {
			t.Fatal("tokens and an error")
		}
		for _, token := range got {
			if token < 1 || token > maxToken {
				t.Fatalf("%d is no token", token)
			}
		}
	})
}

// numbers are the tokens from 1 to n.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(i + 1))
	}
	return b.String()
}
