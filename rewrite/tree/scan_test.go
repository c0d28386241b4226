package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParserTakesWhatRFC8259Has(t *testing.T) {
	for _, src := range []string{
		`null`, `true`, `false`, `0`, `-0`, `-1`, `10`, `1.0`, `1e5`, `1E+05`, `1.25e-0`, `""`, `" "`, `"\"\\\/\b\f\n\r\t\u00aF"`, `"é😀"`, `"\ud800"`, `"\udc00\ud800"`,
		"\"\x7f\"", "\"\xff\xed\xa0\x80\"", `[]`, `[ ]`, `{}`, `{ }`, `[1,[2,{"a":[]}]]`, " \t\r\n{\n\"a\" :\t1\r} ", `{"":1,"":2}`,
		`"a string that is longer than eight bytes, and ends at no multiple of them"`,
	} {
		var tr Tree
		if err := tr.Parse([]byte(src), Limits{}); err != nil {
			t.Errorf("%q: %v", src, err)
		}
		if !json.Valid([]byte(src)) {
			t.Errorf("%q: encoding/json does not take it", src)
		}
	}
}

func TestParserSaysWhereItStopped(t *testing.T) {
	for src, offset := range map[string]int{
		``: 0, ` `: 1, `tru`: 3, `trve`: 2, `nul `: 3, `+1`: 0, `-`: 1, `01`: 1, `1.`: 2, `.5`: 0, `1e`: 2, `1e+`: 3, `1.e1`: 2, `0x1`: 1, `NaN`: 0, `Infinity`: 0,
		`"`: 1, `"abc`: 4, `"\`: 2, `"\x"`: 2, `"\u12"`: 5, `"\u123`: 6, `"\u12G4"`: 5, "\"\x00\"": 1, "\"a long text with a \n in it\"": 20,
		`[`: 1, `[1`: 2, `[1,`: 3, `[1,]`: 3, `[,1]`: 1, `[1 2]`: 3, `[1}`: 2, `{`: 1, `{"a"`: 4, `{"a":`: 5, `{"a":1`: 6, `{"a":1,}`: 7, `{a:1}`: 1, `{'a':1}`: 1, `{"a" 1}`: 5,
		`{"a":1 "b":2}`: 7, `{"a":1]`: 6, `{1:1}`: 1, `1 2`: 2, `{}}`: 2, `/**/{}`: 0, "\ufeff{}": 0, `{"a":tru}`: 8, `]`: 0,
	} {
		var tr Tree
		err := tr.Parse([]byte(src), Limits{})
		var e *SyntaxError
		if !errors.As(err, &e) || e.Offset != offset || e.Reason == "" {
			t.Errorf("%q: got %v, want an error at %d", src, err, offset)
		}
		if json.Valid([]byte(src)) {
			t.Errorf("%q: encoding/json takes it", src)
		}
	}
}

// The eight bytes at a time must find what one byte at a time finds, wherever it stands.
func TestPlainTextStopsAtTheFirstSpecialByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.SampledFrom([]byte("aé\x80\xff\x7f !#[]^\"\\\x1f\x00\n")), 0, 40).Draw(t, "src")
		want := strings.IndexFunc(string(byteRunes(src)), func(r rune) bool { return r == '"' || r == '\\' || r < 0x20 })
		if want < 0 {
			want = len(src)
		} else {
			want = len([]rune(string(byteRunes(src))[:want]))
		}
		if got := plainText(src, 0); got != want {
			t.Fatalf("%q: %d, want %d", src, got, want)
		}
	})
}

func byteRunes(src []byte) (r []rune) {
	for _, b := range src {
		r = append(r, rune(b))
	}
	return r
}

func TestTextIsComparedByItsContent(t *testing.T) {
	same := [][]string{
		{`a/b`, `a\/b`, `\u0061\u002fb`, `a\u002Fb`},
		{`😀`, `\ud83d\ude00`, `\uD83D\uDE00`},
		{"\x7f", `\u007f`},
		{`\ud800`, "\xed\xa0\x80"},
		{`\ud800\ud800\udc00`, "\xed\xa0\x80\U00010000"},
		{`\b\f\n\r\t\"\\`, `\u0008\u000c\u000a\u000d\u0009\u0022\u005c`},
	}
	all := [][]string{{`\ud801`}, {`\udc00`}, {`\udc00\ud800`}, {``}, {`\u0000`}, {`\ufffd`}, {"\xff"}, {`\\u0061`}}
	all = append(all, same...)
	for i, a := range all {
		for j, b := range all {
			for _, x := range a {
				for _, y := range b {
					xEsc, yEsc := strings.Contains(x, `\`), strings.Contains(y, `\`)
					if got := sameText([]byte(x), xEsc, []byte(y), yEsc); got != (i == j) {
						t.Errorf("%q, %q: %v", x, y, got)
					}
					if i == j && hashText([]byte(x), xEsc) != hashText([]byte(y), yEsc) {
						t.Errorf("%q, %q: hashes differ", x, y)
					}
				}
			}
		}
	}
}

func TestStringsAreWrittenAsTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "😀", "\xed\xa0\x80", "\xed\xb0\x80", "\"", "\\", "\x00", "\x1f", "\xff", "/", "\xed"})).Draw(t, "parts")
		want := strings.Join(parts, "")
		src := AppendString(nil, want)
		var tr Tree
		if err := tr.Parse(src, Limits{}); err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		if got := tr.Root().Text(); got != want {
			t.Fatalf("%q became %s and %q", want, src, got)
		}
	})
}

// A key is looked up the same whether its object is small enough to be scanned or large enough for a table.
func TestFindInSmallAndLargeObjects(t *testing.T) {
	for _, n := range []int{0, 1, tableFrom - 1, tableFrom, 100, 1000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		src := fmt.Sprintf(`{%s"dup":1,"\u0064up":2,"last":3}`, b.String())
		var tr Tree
		if err := tr.Parse([]byte(src), Limits{}); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{"dup": "2", "last": "3", "k0": "0", fmt.Sprintf("k%d", n-1): fmt.Sprint(n - 1), "no": ""} {
			got := string(tr.Root().Get(key).Raw())
			if n == 0 && strings.HasPrefix(key, "k") {
				want = ""
			}
			if got != want {
				t.Errorf("%d members: %s is %q, want %q", n, key, got, want)
			}
		}
		if got := tr.Root().Len(); got != n+2 {
			t.Errorf("%d members counted, want %d", got, n+2)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	doc := []byte(`{"name":"a small document","stock":10,"price":12.50,"tags":["a","b"],"lines":[` +
		strings.Repeat(`{"sku":"tea","n":2,"gift":false,"note":null},`, 20) + `{}],"updated_at":"2024-05-01T10:00:00Z"}`)
	var t Tree
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Parse(doc, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestALookUpPassesNoHiddenMembers: to take 16,000 duplicates out of a document took a second, because each look-up went through all of them.
func TestALookUpPassesNoHiddenMembers(t *testing.T) {
	for _, n := range []int{2, 100} { // without a table, and with one
		var doc Tree
		if err := doc.Parse([]byte(`{"b":0,`+strings.Repeat(`"a":1,`, n)+`"a":2,"c":3}`), Limits{}); err != nil {
			t.Fatal(err)
		}
		f := doc.Root().Finder()
		b := f.Like(doc.Root().FirstOfAll())
		if string(b.Raw()) != "0" || f.next != b.NextOfAll() || !f.next.Hidden() {
			t.Errorf("%d duplicates: behind %q the look-up stands at %q", n, b.Member(), f.next.Member())
		}
		for m := doc.Root().FirstOfAll().NextOfAll(); m.Exists(); m = m.NextOfAll() {
			want := "2"
			if m.Key() == "c" {
				want = "3"
			}
			if got := f.Like(m); string(got.Raw()) != want {
				t.Errorf("%d duplicates: %q was looked up, and %q found", n, m.Member(), got.Member())
			}
		}
	}
}
