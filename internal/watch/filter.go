package watch

import (
	"optimist/internal/budget"
	"optimist/internal/jsontext"
	"optimist/internal/wire"
)

// filter takes the hits out of the answer to a search as it comes, for somebody to look at, and puts them back in another form. All else
// passes as it is. It holds back no more than the hit that is coming.
type filter struct {
	hit  func(hit []byte) []byte // what stands in place of a hit
	head func(head []byte)       // is called with what stands before the hits; nil: nobody looks
	rest func(piece []byte)      // is called with the pieces of what isn't taken out as a hit; nil: nobody looks
	lost func()                  // is called once if hits may pass as they are: the answer is too large; nil: nobody looks

	room  *budget.Account // for what is held back
	stage stage
	in    []byte // what has come and isn't dealt with yet
	out   []byte // of this piece
	retry int    // how much of a value has to be there before it is looked at again
	moved int    // the bytes that were moved within in: what the filter costs beyond one look at each byte
}

// stage is how far a filter has come.
type stage uint8

const (
	beforeHits stage = iota
	amongHits
	behindHits
)

const (
	// maxHit is up to how many bytes the list of hits is looked for, and up to how many a hit may have. Of an answer with more the rest
	// passes as it is.
	maxHit = copyLimit
	// largeHit is from how many bytes on a hit, or what stands before all hits, isn't looked at again with each piece, and memory for it is
	// asked for: that for smaller ones is there from the beginning.
	largeHit = 64 << 10
)

// change is for proxy.ForwardOptions.
func (f *filter) change(p []byte, last bool) []byte {
	if f.stage == behindHits && len(f.in) == 0 {
		f.look(p)
		return p
	}
	f.out = f.out[:0]
	if !f.hold(p) {
		f.giveUp()
		f.pass(f.in)
		f.in = nil
		f.pass(p)
		return f.out
	}
	n := 0
	if f.stage == beforeHits {
		n = f.begin(last)
	}
	for f.stage == amongHits && n < len(f.in) {
		done := f.next(f.in[n:], last)
		if n += done; done == 0 {
			break
		}
	}
	if f.stage == behindHits || last {
		f.pass(f.in[n:])
		n = len(f.in)
	}
	f.drop(n)
	return f.out
}

// giveUp has the rest pass as it is, hits and all.
func (f *filter) giveUp() {
	if f.stage != behindHits && f.lost != nil {
		f.lost()
	}
	f.stage = behindHits
}

// pass puts a piece out as it is.
func (f *filter) pass(piece []byte) {
	f.look(piece)
	f.out = append(f.out, piece...)
}

func (f *filter) look(piece []byte) {
	if f.rest != nil {
		f.rest(piece)
	}
}

// drop takes what is dealt with off the beginning of in. While a large hit comes, that is nothing, and nothing is moved: to move all of the
// hit with each of its pieces took 1.7 s for 15 MB.
func (f *filter) drop(n int) {
	if n > 0 {
		f.moved += len(f.in) - n
		f.in = append(f.in[:0], f.in[n:]...)
	}
}

// hold takes the next bytes of the answer in. It reports false where there is no memory for them: then the rest passes as it is.
func (f *filter) hold(p []byte) bool {
	if len(f.in)+len(p) > largeHit && f.room.Take(2*wire.Growth(f.in, len(p), -1)) != nil { // out grows as in does
		return false
	}
	f.in = wire.Gather(f.in, p, -1)
	return true
}

// begin looks for the list of hits, and passes what stands before it.
func (f *filter) begin(last bool) (n int) {
	if len(f.in) < f.retry && !last {
		return 0
	}
	if n = hitsAt(f.in); n == 0 {
		f.lookLater(len(f.in))
		if len(f.in) > maxHit {
			f.giveUp()
		}
		return 0
	}
	f.stage, f.retry = amongHits, 0
	if f.head != nil {
		f.head(f.in[:n])
	}
	f.pass(f.in[:n])
	return n
}

// lookLater has a large text, of which so much is here, looked at again when twice as much is: to look with each piece takes long.
func (f *filter) lookLater(n int) {
	if n > largeHit {
		f.retry = min(2*n, maxHit+1)
	}
}

// hitsAt is where the first hit of an answer stands, as far as that has come; 0 where it can't be told yet.
func hitsAt(answer []byte) int {
	at := jsontext.SkipSpace(answer, 0)
	for _, bracket := range [2]byte{'{', '['} {
		if at = memberAt(answer, at, "hits"); at < 0 || answer[at] != bracket {
			return 0
		}
	}
	return at + 1
}

// memberAt is where the value of a member of the object at i stands, as far as that has come; -1 where it can't be told yet.
func memberAt(text []byte, i int, name string) int {
	if i >= len(text) || text[i] != '{' {
		return -1
	}
	for {
		key := jsontext.SkipSpace(text, i+1)
		end := jsontext.StringEnd(text, key)
		if end < 0 {
			return -1
		}
		value := jsontext.SkipSpace(text, jsontext.SkipSpace(text, end)+1) // behind the colon
		if value >= len(text) {
			return -1
		}
		if string(text[key+1:end-1]) == name {
			return value
		}
		if i = jsontext.ValueEnd(text, value); i < 0 {
			return -1
		}
		if i = jsontext.SkipSpace(text, i); i >= len(text) || text[i] != ',' {
			return -1
		}
	}
}

// next deals with the beginning of in, and returns how much of it that was: 0 where more has to come.
func (f *filter) next(in []byte, last bool) int {
	switch c := in[0]; {
	case c == ',' || jsontext.IsSpace(c):
		f.out = append(f.out, c)
		return 1
	case c != '{':
		f.stage = behindHits
		return 0
	case len(in) > maxHit:
		f.giveUp()
		return 0
	case len(in) < f.retry && !last:
		return 0
	}
	end := jsontext.ValueEnd(in, 0)
	if end < 0 {
		f.lookLater(len(in))
		return 0
	}
	f.retry = 0
	f.out = append(f.out, f.hit(in[:end])...)
	return end
}
