package intercept

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/coding"
	"optimist/internal/obs"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
)

// stream is a bulk that nobody holds. Its items are read as they come, and written in windows, one after the other: while the engine
// works on one, the next is read. So the memory that it takes is that of two windows, and an item goes after all items before it have
// their result. The answers are kept until the last of them is there, because the client learns first whether any is an error.
type stream struct {
	i     *Interceptor
	r     *request
	d     bulk.Defaults
	in    *pieces
	plain io.Reader // of in, without its coding

	size  int    // of a window, in bytes
	text  []byte // what has been read, and isn't in a window yet
	short bool   // text is no whole item, as far as that can be told
	ended bool   // nothing follows text

	denied denial
	rounds int // see items

	working chan struct{} // closed when the window under way is done; nil: none is
	failed  error         // why nothing more is to be done; valid when working is closed

	windows  int
	items    int
	began    time.Time
	head     []wire.Field
	refusal  *bulk.Refusal
	summary  bulk.Summary
	account  outcome.Items
	out      spool
	refresh  refresh
	filtered bool // the client wants to see less of the answer
}

// Bounds of a window. Its bytes are a part of limits.max_guarded_body; an item that is larger is a window by itself.
const (
	windowItems = 1000
	windowPart  = 16
	leastWindow = 1 << 10
	// roomOfStream is how many times max_guarded_body a bulk takes that comes as a stream: two windows, as items, requests and answers.
	roomOfStream = 3
	// keptOfStream is how many times max_guarded_body of a bulk is read at most before the first of it is sent, and keptAhead how many bytes
	// besides: enough to see that its first item is larger than what may be held. A gzip decoder reads ahead.
	keptOfStream = 2
	keptAhead    = 64 << 10
	// longestAction is longer than any action is, in bytes.
	longestAction = 64 << 10
)

// errLarge reports an item that is larger than what may be held.
var errLarge = errors.New("an item of the bulk is too large to be held")

// guardStream guards the items of a bulk that can't be held as a whole. done is false where nothing of it has been sent, and it can't be
// guarded.
func (i *Interceptor) guardStream(r *request) (done bool, left asIs) {
	d, why := i.defaults(r)
	if why != "" {
		return false, asIs{reason: why}
	}
	switch err := budget.Of(r.Context()).Take(roomOfStream * i.MaxBody); {
	case errors.Is(err, budget.ErrTooMuch):
		return false, asIs{reason: outcome.ReasonTooLarge}
	case err != nil:
		r.Fail(err)
		return true, left
	}
	_, filtered := uri.Param(r.Op().Query, "filter_path")
	in := &pieces{r: r, keeps: true, keep: keptOfStream*i.MaxBody + keptAhead}
	s := &stream{i: i, r: r, d: d, in: in, size: max(int(i.MaxBody/windowPart), leastWindow), short: true,
		rounds: mostRounds, began: time.Now(), filtered: filtered, refresh: refreshOf(r)}
	defer s.out.Close()
	s.plain = in
	if r.Gzipped() {
		s.plain = &unzipped{in: in}
	}
	err := s.run()
	switch {
	case in.keeps && errors.Is(err, bulk.ErrUnreadable):
		r.GiveBack()
		return false, asIs{reason: outcome.ReasonFormat}
	case in.keeps && err == nil: // it has no items
		r.GiveBack()
		return false, left
	case in.keeps:
		r.Fail(err)
	case err != nil:
		r.Fail(err, outcomeField(&s.account))
	default:
		s.answer()
	}
	return true, left
}

// run writes all windows.
func (s *stream) run() error {
	defer s.wait() //nolint:errcheck // what it says has been heard, or the client is told another error
	for {
		b, err := s.next()
		if failed := s.wait(); failed != nil || s.refusal != nil {
			return failed
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errLarge):
			if err := s.large(); err != nil {
				return s.cutOff(err)
			}
		case err != nil:
			return s.cutOff(err)
		default:
			s.in.keeps = false
			s.working = make(chan struct{})
			go s.work(b)
		}
	}
}

// cutOff is why the bulk can't be read on, as the client is told it: what was sent before that can't be taken back.
func (s *stream) cutOff(err error) error {
	if s.in.keeps {
		return err // nothing was
	}
	if errors.Is(err, bulk.ErrUnreadable) {
		why := ""
		if errors.Is(err, bulk.ErrUnended) {
			why = ": the bulk has to end with a newline"
		}
		return illegal(fmt.Sprintf("item %d of the bulk can't be read%s; the %d before it were carried out, and nothing behind them",
			s.items+1, why, s.items))
	}
	failure := proxy.FailureOf(err, false)
	if failure == nil {
		return err
	}
	told := *failure
	told.Reason = fmt.Sprintf("%s; the first %d items of the bulk were carried out, and nothing behind them", told.Reason, s.items)
	return &told
}

// wait waits until the window under way is done. The error is why nothing more may be.
func (s *stream) wait() error {
	if s.working != nil {
		<-s.working
		s.working = nil
	}
	return s.failed
}

// next reads the next window. The error is io.EOF behind the last, bulk.ErrUnreadable, errLarge, or what the connection says. Empty lines
// take no memory, but time: of these a bulk may have as many bytes, one behind the other, as may be held.
func (s *stream) next() (*items, error) {
	for empty := int64(0); ; {
		if s.short && !s.ended {
			if err := s.fill(); err != nil {
				return nil, err
			}
		}
		b := s.i.newItems(s.r)
		b.takeRoom(min(windowItems, len(s.text)/256+1))
		b.denied = &s.denied
		reader := bulk.NewReader(s.text, s.d)
		reader.More, reader.Lenient = !s.ended, true
		err := b.read(reader, windowItems)
		if err != nil && (s.in.keeps || len(b.all) == 0) {
			return nil, err // of the first window nothing has been sent: the engine gets the bulk as it is
		}
		if len(b.all) == 0 {
			empty += int64(len(s.text) - len(reader.Rest()))
		}
		s.text = reader.Rest()
		s.short = err == nil && len(b.all) < windowItems
		switch {
		case len(b.all) > 0:
			return b, nil
		case s.ended:
			return nil, io.EOF
		case empty > s.i.MaxBody, len(s.text) >= longestAction && !reader.HasAction():
			return nil, bulk.ErrUnreadable
		case int64(len(s.text)) >= s.i.MaxBody:
			return nil, errLarge
		}
	}
}

// fill reads on until there are as many bytes of text as a window has, or twice as many as before, or no more come. What was read before
// is copied: it may be part of a window under way.
func (s *stream) fill() error {
	text := append(make([]byte, 0, max(s.size, 2*len(s.text))), s.text...)
	for len(text) < cap(text) {
		n, err := s.plain.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			s.ended = true
			break
		}
		if err != nil {
			return err
		}
	}
	s.text = text
	return nil
}

// work writes a window.
func (s *stream) work(b *items) {
	defer close(s.working)
	defer func() {
		if p := recover(); p != nil {
			s.failed = fmt.Errorf("a window of a bulk ended in a panic: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, taken := budget.Part(s.r.Context())
	defer taken.End()
	b.ctx, b.epoch = ctx, s.i.Sessions.Epoch()
	b.refreshes = s.refresh.of(s, b)
	if s.rounds >= 0 {
		s.rounds += windowRounds
	}
	b.rounds = &s.rounds
	b.findJournals(b.tokens())
	b.choose()
	b.run()
	s.failed = s.take(b)
}

// take takes the results of a window. The error is why the client gets no results.
func (s *stream) take(b *items) error {
	if s.windows == 0 {
		if err := b.deniedWhole(&s.account); err != nil {
			b.noteAnswers()
			return err
		}
	}
	if whole := b.refusal(); whole != nil && s.windows == 0 {
		s.refusal = whole
	}
	s.windows++
	part := b.group.Summary()
	if s.head == nil {
		s.head, s.summary.TookFirst, s.summary.Ingest = b.group.Head(), part.TookFirst, part.Ingest
	} else if part.Ingest >= 0 {
		s.summary.Ingest = max(s.summary.Ingest, 0) + part.Ingest
	}
	var element []byte
	var err error
	for k := range b.all { // all are counted, although the answer can't be kept
		element = b.appendItem(element[:0], k, &s.account, &s.summary)
		if err == nil && s.refusal == nil {
			err = s.keep(element)
		}
	}
	s.items += len(b.all)
	b.noteAnswers()
	b.leaveRoom()
	if err != nil {
		return s.notKept(err)
	}
	return nil
}

// typeNotKept is the type of the error that a bulk gets whose answer finds no room on the disk.
const typeNotKept = "answer_not_kept"

// notKept is the failure of a bulk whose answer can't be kept. The items so far were sent, and the client learns only how many had which
// outcome. It isn't a 503: clients send a request with that answer again by themselves, and items without an id would be stored twice.
// What is wrong with the folder is for the log: clients needn't know its path.
func (s *stream) notKept(err error) error {
	if n, tell := s.i.cutOff.Count(); tell {
		s.i.Log.Warn("a bulk was cut off: the temporary folder (TMPDIR) doesn't keep the answers to its items",
			obs.KeyCount, n, "items", s.items, obs.KeyError, err)
	}
	return &proxy.Failure{Status: http.StatusInsufficientStorage, Type: typeNotKept, Reason: fmt.Sprintf(
		"the first %d items of the bulk were carried out, and nothing behind them. Their results can't be kept in optimist's "+
			"temporary folder; optimist's log says why", s.items)}
}

// keep keeps an element of the answer.
func (s *stream) keep(element []byte) error {
	if s.filtered {
		if element = filteredElement(s.r.Op().Query, element); element == nil {
			return nil
		}
	}
	if s.out.size > 0 {
		if _, err := s.out.Write([]byte{','}); err != nil {
			return err
		}
	}
	_, err := s.out.Write(element)
	return err
}

// large deals with an item that is larger than what may be held: it goes as it is, by itself, unless a rule refuses items of bulks.
func (s *stream) large() error {
	reader := bulk.NewReader(s.text, s.d)
	reader.Lenient = true
	it, ok, err := reader.Action()
	if err != nil || !ok {
		return bulk.ErrUnreadable
	}
	s.in.keeps = false
	b := s.i.newItems(s.r)
	b.refreshes = s.refresh.of(s, b)
	b.all = append(b.all, item{Item: it, named: b.nameOf(it.Index)})
	b.findJournals(b.tokens())
	x := &b.all[0]
	x.rule, x.err = b.ruleOf(x)
	switch {
	case x.err != nil || s.i.Rules.Effective(x.rule) != rule.Guard:
	case x.rule.Bulk == rule.BulkRefuse:
		x.err = b.refuse(x)
	case x.rule.Locks != nil:
		x.err = unguardable(x.rule, outcome.ReasonTooLarge)
	default:
		x.skip()
	}
	if x.err == nil {
		if x.journal, x.err = b.journalOfItem(x); x.journal != nil {
			x.err = cantUndo("it is too large to be held")
		}
	}
	rest := &line{from: s.plain, text: s.i.bulkWithout(ours{tokens: it.Token != ""}, s.r, s.text)}
	if x.err != nil {
		x.account.Kind = outcome.Refused
	} else {
		b.open()
		b.passed(x, func() (bulk.Result, error) { return b.group.Stream(rest) })
		x.account.Reason = outcome.ReasonTooLarge
		s.i.Metrics.Outcomes.Inc(outcome.Passed.String(), outcome.ReasonTooLarge)
	}
	if err := rest.skip(); err != nil {
		return err
	}
	s.text, s.short, s.ended = rest.behind, true, rest.ended
	return s.take(b)
}

// pieces are a request's body.
type pieces struct {
	r     *request
	piece []byte
	keeps bool  // the request may still be forwarded as it is: nothing of it was sent
	keep  int64 // of how many further bytes that may be so
	err   error // final
}

// Read implements io.Reader. The error is bulk.ErrUnreadable where more would have to be kept than may be.
func (p *pieces) Read(into []byte) (int, error) {
	for len(p.piece) == 0 {
		if p.err == nil && p.keeps && p.keep <= 0 {
			p.err = bulk.ErrUnreadable
		}
		if p.err == nil {
			p.piece, p.err = p.r.Piece(p.keeps)
			p.keep -= int64(len(p.piece))
		}
		if p.err != nil {
			return 0, p.err
		}
	}
	n := copy(into, p.piece)
	p.piece = p.piece[n:]
	return n, nil
}

// unzipped is a body without its gzip coding.
type unzipped struct {
	in *pieces
	z  *coding.Reader
}

// Read implements io.Reader. The error is that of the body, or says what is wrong with the coding.
func (u *unzipped) Read(into []byte) (n int, err error) {
	if u.z == nil {
		u.z, err = coding.NewReader(u.in)
	}
	if err == nil {
		n, err = u.z.Read(into)
	}
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case u.in.err != nil && u.in.err != io.EOF:
		return n, u.in.err
	}
	return n, &proxy.Failure{Status: http.StatusBadRequest, Type: "parse_exception", Reason: coding.ErrMalformed.Error() + ": " + err.Error()}
}
