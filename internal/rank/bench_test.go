package rank

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkChoice has so many revisions of a document of 2 KB outstanding, each with an entry more than the one before.
func BenchmarkChoice(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			cs := make([]Candidate, n)
			for i := range cs {
				cs[i].Revision = at(int64(i+1), large(i))
				cs[i].Digest = newDigest(cs[i].Source, naming{}, newestOf(cs[:i]))
			}
			sent := Sent{Body: []byte(strings.Replace(large(n/2), `"state":"open"`, `"state":"closed"`, 1))}
			b.SetBytes(int64(len(sent.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if c := Likeliest(cs, sent); c.Best != n/2 {
					b.Fatal(c.Best)
				}
			}
		})
	}
}

// BenchmarkOneName has lists of so many entries with one name. The time grows with them, not with their square.
func BenchmarkOneName(b *testing.B) {
	for _, n := range []int{500, 1000, 2000, 4000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			cs := make([]Candidate, 64)
			for i := range cs {
				cs[i] = Candidate{Revision: at(int64(i+1), oneName(n, i))}
				cs[i].Digest = newDigest(cs[i].Source, naming{}, newestOf(cs[:i]))
			}
			sent := Sent{Body: []byte(oneName(n, 100))}
			b.ReportAllocs()
			for b.Loop() {
				Likeliest(cs, sent)
			}
		})
	}
}

// oneName is a document with a list of entries that have one name.
func oneName(entries, value int) string {
	return `{"l":[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"host":"web","value":%d},`, value), entries), ",") + `]}`
}

func BenchmarkDigest(b *testing.B) {
	source := []byte(large(32))
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		digestOf(source)
	}
}

// large is a document of about 2 KB.
func large(entries int) string {
	var s strings.Builder
	fmt.Fprintf(&s, `{"state":"open","count":%d,"lines":[`, entries)
	for i := range entries {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"sku":"A-%d"}`, i)
	}
	s.WriteString(`]`)
	for i := 0; s.Len() < 2000; i++ {
		fmt.Fprintf(&s, `,"field%d":"some value of field %d"`, i, i)
	}
	s.WriteString(`}`)
	return s.String()
}

// BenchmarkLarge has 64 revisions of a document of so many lines, each with a line more. Of the newest one, and of what the client sent,
// there is no digest yet.
func BenchmarkLarge(b *testing.B) {
	for _, lines := range []int{100, 1000} {
		b.Run(strconv.Itoa(lines), func(b *testing.B) {
			order := func(more int) []byte {
				all := make([]string, lines+more)
				for i := range all {
					all[i] = fmt.Sprintf(`{"id":"l%d","article":"article %d","qty":%d,"price":"%d.99"}`, i, i%100, i%10, i%20)
				}
				return fmt.Appendf(nil, `{"total":%d,"lines":[%s]}`, len(all), strings.Join(all, ","))
			}
			cs := make([]Candidate, 64)
			for i := range cs {
				cs[i].Revision = at(int64(i+1), string(order(i)))
			}
			sent := Sent{Body: []byte(strings.Replace(string(order(32)), `"qty":7`, `"qty":8`, 1))}
			b.SetBytes(int64(len(sent.Body)))
			b.ReportAllocs()
			for b.Loop() {
				cs[63].Digest = nil
				if c := Likeliest(cs, sent); c.Best != 32 {
					b.Fatal(c.Best)
				}
			}
		})
	}
}
