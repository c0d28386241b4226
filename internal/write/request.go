package write

import (
	"context"
	"time"

	"optimist/internal/api"
	"optimist/internal/apply"
	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/fencing"
	"optimist/internal/intent"
	"optimist/internal/journal"
	"optimist/internal/learn"
	"optimist/internal/mark"
	"optimist/internal/outbound"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/retry"
)

// change is one client's write on its way. Each step fills one group of the fields, and the later steps only read them.
type change struct {
	// What the request says: read.
	req         *Request
	base.Search // its base: chooseWay

	// How it goes upstream: read, and for patches asPatch.
	out   outbound.Template
	patch *patch.Request // a PATCH, or an _update that optimist applies as a patch; nil for all others

	// The document that it makes: chooseWay, and apply.
	intents      apply.Maker // makes its intent, under its rule
	viewWithPart []byte      // the document that the client has seen, with the part of its _update in it; nil: not known
	epoch        session.Epoch
	epochAt      int64         // when the change took its epoch
	began        session.Place // of a patch, which takes its base at its end
	guard        doc.Numbers   // the client's own guard, if optimist makes the write and doesn't forward it
	intent       intent.Intent
	trail        mark.Trail // the marks of the base: unmark has taken them out of its body
	fromBase     bool       // the client made it from a base: a conflict means that others have changed the document since
	shareable    bool       // it may share a write with other changes, if its client sees documents whole: see mayShare

	// What has become of it until now: the attempt.
	attempts     int
	draft        intent.Draft // of the last attempt
	obstacle     obstacle
	maybeApplied bool        // a try may have been applied: a 409 may come from the client's own write
	tries        []mark.Mark // the marks of tries that may have been applied: see marks.go
	trailLeft    mark.Trail  // the marks that the last try leaves in the document, if it is applied

	moves int // how often it has begun again because the index's name was moved

	lead attempt // the attempt on its batch, if it leads the batch

	// Its answer: settle.
	answer *respond.Answer
	err    error

	budgetLevel int64           // how much memory the request held before the first try
	answerRoom  respond.Answer  // memory for the answer, so that most writes allocate none
	ctx         context.Context // of Do, within the client's own time
	cancel      context.CancelFunc
}

// obstacle is why optimist itself doesn't make a change.
type obstacle uint8

const (
	noObstacle  obstacle = iota
	locked               // the locks refuse it
	unfit                // what the client asks for can't be done to the document as it is: a test in its patch fails, say
	unpatchable          // optimist can't apply the patch; if it stands for an _update, the engine may
)

// The fields that optimist adds to answers.
var (
	etagName    = []byte("ETag")
	outcomeName = []byte("Optimist-Outcome")
)

// read reads the request. The client has to mend an error.
func (c *change) read(r *Request, s *Service) (err error) {
	if c.req != nil { // it is used again
		*c = change{} // a zero literal clears it in place: one with values would be copied, and a change is large
	}
	c.req, c.Question = r, base.Question{Request: &r.Request, Found: r.Found, Journalled: r.Journal != nil, Began: time.Now(), Sent: r.Body}
	c.Doc = r.Names
	c.out = outbound.Template{Room: r.Room, Op: r.Op, Fields: r.Fields, Client: r.Caller.Client, Method: r.Method, Path: r.Op.Path,
		Query: r.Op.Query}
	c.intents.Search, c.intents.Means, c.intents.Method = &c.Search, &s.means, r.Method
	if r.Op.Kind == api.Delete {
		c.Sent = nil
	}
	if err = c.Read(r.Op, r.Fields, r.Body, r.Rule.IfMatch, c.Began); err == nil && c.field() != "" {
		c.dropMarks()
	}
	return err
}

// Request is a write of one document, taken by a rule. Its slices must stay as they are until Do returns. A caller may use one Request
// for many writes, one after the other.
type Request struct {
	base.Request // a write with a Preset base is kept nowhere again
	Method       []byte
	Body         []byte              // as sent, without transfer coding
	Route        session.Credentials // stands for the request's way to the engine: only requests with the same Route share a write
	Background   bool
	Found        *catalog.Index  // the write's index, if the caller has just asked what that is; else nil
	Room         *outbound.Room  // memory for the request to the engine; nil: it takes new memory
	Parker       outbound.Parker // may keep the first try until the answer comes; nil: the goroutine that sends the write waits
	// Client is the client as package learn notes its conflicts. Nil: it notes none of this client.
	Client learn.Client
	// Reason says why nothing can guard the write (its request is signed, say). It is forwarded unchanged then, and the outcome names the
	// reason. Empty: the write can be guarded.
	Reason string
	// Piped says that the write is an _update in a bulk, and that the engine runs an ingest pipeline of the client's over its upsert.
	Piped bool
	// OnlyInBulk says that Op doesn't say all of the write: see bulk.Item. It becomes no dead letter, which would lose the rest.
	OnlyInBulk bool
	// WriteID is the id of the marks that the write leaves under a rule with write_id. The proxy that repeats the write finds it by that id.
	// Zero: each try has an id of its own.
	WriteID stamp.ID
	// Tokens has the tokens of the locks that the client holds.
	Tokens fencing.Tokens
	// Journal notes the write, so that it is undone if the client's lock isn't released. Nil: the lock has no undo.
	Journal journal.Journal

	change change // of the Do under way
}

// Outcome is what became of the write, after Do. It is good until the Request's next write.
func (r *Request) Outcome() *outcome.Outcome { return &r.change.Outcome }

// Unanswered is the write whose client has no answer yet. Call its NoteAnswer right before the answer is written.
func (r *Request) Unanswered() session.Unanswered { return r.change.Base.Unanswered() }

// scope names the changes that may use a guess of this change: those with the same route and parameters.
func (c *change) scope() string {
	realm := c.Credentials()
	return string(realm[:]) + string(c.req.Route[:]) + string(c.out.Query)
}

// policy is the rule's policy of retries, within the time that the client itself allows.
func (c *change) policy() retry.Policy {
	p := retry.Policy(c.Rule.Retry)
	if c.patch != nil && c.patch.Retries >= 0 {
		p.MaxAttempts = min(p.MaxAttempts, c.patch.Retries+1) // the operator's limit holds, too
	}
	return p.Until(c.Deadline)
}

// filtered applies the client's filter_path to an answer that optimist itself has made.
func (c *change) filtered(a *respond.Answer) *respond.Answer {
	a.Body = respond.Filtered(c.out.Query, a.Body)
	return a
}

// field is the field of the document in which writes leave their marks, or "" where writes leave none.
func (c *change) field() string {
	if c.InOthersStream() {
		return ""
	}
	return c.Rule.WriteID
}

// isCreate reports whether the client asks for a new document. If the document exists, the engine refuses the write.
func (c *change) isCreate() bool {
	return c.Op.Kind == api.Create || c.Op.Kind == api.Index && c.OnlyNew
}

// goesAsPart reports whether the change goes upstream as an _update of its part, and not as a document.
func (c *change) goesAsPart() bool { return c.Part != nil && c.patch == nil }

// onlyCreates reports whether the change went as an _update that only creates a document. The engine's noop is a conflict then.
func (c *change) onlyCreates() bool { return c.goesAsPart() && c.draft.Part == nil }

// revision is the change's base as the engine holds it, as far as optimist knows.
func (c *change) revision() doc.Revision {
	if c.guard.Known() {
		return doc.Revision{Numbers: c.guard, Version: c.Base.Version}
	}
	return doc.Revision{Numbers: c.Base.Numbers, Version: c.Base.Version, Source: c.Base.Stored}
}
