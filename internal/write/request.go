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

// change is one client's write on its way. One step fills each group of its fields. The steps after it only read them.
type change struct {
	// What the request says: read.
	req         *Request
	base.Search // what it is based on: chooseWay

	// How it goes upstream: read, and for patches asPatch.
	out   outbound.Write
	patch *patch.Request // a PATCH, or an _update that optimist applies as a patch; nil for all others

	// What it is made from: chooseWay, and apply.
	intents      apply.Write // makes its intent, under its rule
	viewWithPart []byte      // the document that the client has seen, with the part of its _update in it; nil: not known
	epoch        session.Epoch
	began        int64       // the moment at which the epoch was taken
	guard        doc.Numbers // the client's own guard, if optimist makes the write and doesn't forward it
	intent       intent.Intent
	trail        mark.Trail // the marks of the base, which aren't in its body any more
	fromBase     bool       // the client made it from a base: a conflict means that others have changed the document since
	shareable    bool       // it may go in one write with others, if its client sees documents whole: see mayShare

	// What became of it so far: the attempt.
	unfit        bool // what the client asks for can't be done to the document as it is: a test in its patch fails, say
	attempts     int
	draft        intent.Draft // of the last attempt
	unpatchable  bool         // the patch turned out to be one that can't be made here
	maybeApplied bool         // a try may have been applied: a 409 may come from the client's own write
	tries        []mark.Mark  // of its tries that may have been applied: see marks.go
	trailLeft    mark.Trail   // the marks that the last try leaves in the document, if it is applied

	barred bool // the locks refuse it
	moves  int  // how often it has begun again because its name was moved

	lead attempt // that on its batch, if it leads

	// What its client gets: settle.
	answer *respond.Answer
	err    error

	budgetLevel int64           // how much memory the request held before the first try
	room        respond.Answer  // memory for the answer, so that most writes allocate none
	ctx         context.Context // of Do, within the client's own time
	cancel      context.CancelFunc
}

// The fields that optimist adds to answers.
var (
	etagName    = []byte("ETag")
	outcomeName = []byte("Optimist-Outcome")
)

// read reads the request. The error is the client's to mend.
func (c *change) read(r *Request, s *Service) (err error) {
	if c.req != nil { // it is used again
		*c = change{} // in place: a literal with values would be copied, and a change is large
	}
	c.req, c.Question = r, base.Question{Request: &r.Request, Found: r.Found, Guarded: r.Journal != nil, Began: time.Now(), Sent: r.Body}
	c.Doc = r.Names
	c.out = outbound.Write{Room: r.Room, Op: r.Op, Fields: r.Fields, Client: r.Caller.Client, Method: r.Method, Path: r.Op.Path,
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
	Route        session.Credentials // stands for where the request goes: only those that are equal in it share a write
	Background   bool
	Found        *catalog.Index  // that the write is of, if it was just asked what that is; nil: nobody has
	Room         *outbound.Room  // of the request to the engine; nil: it takes new memory
	Parker       outbound.Parker // keeps the first try while its answer is waited for, where it can; nil: whoever sends the write waits
	// Client is the one that conflicts are learnt of. Nil: nothing is learnt of this client.
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
	// Tokens are those of the locks that the client holds.
	Tokens fencing.Tokens
	// Journal notes the write, so that it is undone if the client's lock isn't released. Nil: the lock has no undo.
	Journal journal.Journal

	change change // of the Do under way
}

// Outcome is what became of the write, after Do. It is good until the Request's next write.
func (r *Request) Outcome() *outcome.Outcome { return &r.change.Outcome }

// scope is what a guess is good for: the same route and parameters.
func (c *change) scope() string {
	realm := c.Credentials()
	return string(realm[:]) + string(c.req.Route[:]) + string(c.out.Query)
}

// policy is the rule's, within what is left of the client's own time.
func (c *change) policy() retry.Policy {
	p := retry.Policy(c.Rule.Retry)
	if c.patch != nil && c.patch.Retries >= 0 {
		p.MaxAttempts = min(p.MaxAttempts, c.patch.Retries+1) // the operator's limit stays one
	}
	return p.Until(c.Deadline)
}

// filtered takes out of an answer that is made here what the client's filter_path doesn't want.
func (c *change) filtered(a *respond.Answer) *respond.Answer {
	a.Body = respond.Filtered(c.out.Query, a.Body)
	return a
}

// field is the field of the documents in which writes leave their marks, or "" where writes leave none.
func (c *change) field() string { return c.Rule.WriteID }

// goesAsPart reports whether the change goes upstream as an _update of its part, and not as a document.
func (c *change) goesAsPart() bool { return c.Part != nil && c.patch == nil }

// onlyCreates reports whether the change went as an _update that only creates a document. If there is one, that is a conflict, and no noop.
func (c *change) onlyCreates() bool { return c.goesAsPart() && c.draft.Part == nil }

// revision is what the engine holds at the change's base, as far as is known.
func (c *change) revision() doc.Revision {
	if c.guard.Known() {
		return doc.Revision{Numbers: c.guard, Version: c.Base.Version}
	}
	return doc.Revision{Numbers: c.Base.Numbers, Version: c.Base.Version, Source: c.Base.Stored}
}
