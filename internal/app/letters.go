package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"optimist/internal/base"
	"optimist/internal/client"
	"optimist/internal/config"
	"optimist/internal/deadletter"
	"optimist/internal/hook"
	"optimist/internal/intercept"
	"optimist/internal/obs"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/undeliverable"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// openLetters makes what keeps dead letters. Nothing is asked of the store before the first one. An App that tests rules keeps them in its
// own engine: it must not touch what the real one has.
func (a *App) openLetters(c *config.Config) (err error) {
	l := c.DeadLetters
	if a.o.Settled {
		l.Sink, l.Folder = config.SinkEngine, ""
	}
	o := deadletter.Options{MaxLetter: int(l.MaxLetter.Bytes()), Log: a.log, Kept: a.metrics.LetterKept, Replayed: a.metrics.LetterReplayed}
	if l.Folder != "" {
		a.folder = deadletter.NewFolder(l.Folder, l.MaxFolder.Bytes())
		a.atEnd = append(a.atEnd, func() { _ = a.folder.Close() })
		a.metrics.WatchLetters(a.folder.Held)
		if err := a.openLetterFolder(c); err != nil {
			return err
		}
	}
	switch l.Sink {
	case config.SinkFile:
		if a.folder == nil {
			return errors.New("dead_letters: sink: file needs a folder (dead_letters.folder)")
		}
		o.Store = a.folder
	case config.SinkKafka:
		o.Folder = a.folder
		if o.Store, err = a.openTopic(&l); err != nil {
			return err
		}
	default:
		o.Folder = a.folder
		o.Store = deadletter.NewIndex(deadletter.IndexOptions{Upstream: a.nodes, Name: l.Index, Timeout: l.Timeout.Std()})
	}
	a.letters = deadletter.NewDesk(o)
	a.beside.Go(func() { a.letters.Move(a.ctx) })
	return nil
}

// openLetterFolder opens the folder of dead letters if a rule of c asks for them. The error is that it can't be used. Without such a rule
// it only looks for letters of an earlier process. It makes no folder then, and only the log says if the folder can't be used.
func (a *App) openLetterFolder(c *config.Config) error {
	f, needed := a.folder, c.KeepsLetters()
	if f == nil || !needed && !f.Exists() {
		return nil
	}
	damaged, err := f.Open()
	switch {
	case err != nil && needed:
		return fmt.Errorf("the folder of dead letters can't be used (dead_letters.folder: %s): %w", c.DeadLetters.Folder, err)
	case err != nil:
		a.log.Error("there is a folder of dead letters, and it can't be used: letters in it are neither shown nor moved", obs.KeyFile,
			c.DeadLetters.Folder, obs.KeyError, err.Error())
		return nil
	}
	for _, name := range damaged {
		a.log.Error("a file in the folder of dead letters can't be read: it stays until the letter is deleted", obs.KeyFile, name)
	}
	if n, _ := f.Held(); n > 0 {
		a.log.Info("dead letters are in the folder", obs.KeyCount, n)
	}
	return nil
}

// firstLetters prepares for dead letters, which a rule of c asks for, and no rule did before.
func (a *App) firstLetters(c *config.Config) {
	if err := a.openLetterFolder(c); err != nil {
		a.log.Error("while their store is away, dead letters can't be kept", obs.KeyError, err.Error())
	}
	a.letters.Wake()
}

func (a *App) openTopic(l *config.DeadLetters) (*deadletter.Topic, error) {
	k := &l.Kafka
	o := deadletter.TopicOptions{Brokers: k.Brokers, Name: k.Topic, Replicas: k.Replicas, Timeout: l.Timeout.Std()}
	var err error
	if k.Security != config.KafkaOpen {
		if o.TLS, err = kafkaTLS(k.CAFile); err != nil {
			return nil, err
		}
	}
	if o.Login, err = kafkaLogin(k); err != nil {
		return nil, err
	}
	topic, err := deadletter.OpenTopic(o)
	if err != nil {
		return nil, fmt.Errorf("dead_letters.kafka: %w", err)
	}
	a.atEnd = append(a.atEnd, topic.Close)
	return topic, nil
}

func kafkaTLS(caFile string) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return conf, nil
	}
	data, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("dead_letters.kafka.ca_file: %w", err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("dead_letters.kafka.ca_file: there is no certificate in %s", caFile)
	}
	return conf, nil
}

func kafkaLogin(k *config.Kafka) (sasl.Mechanism, error) {
	if k.BasicFile == "" {
		return nil, nil
	}
	pair, err := config.Secret("dead_letters.kafka.basic_file", k.BasicFile)
	if err != nil {
		return nil, err
	}
	user, password, ok := strings.Cut(pair, ":")
	if !ok {
		return nil, fmt.Errorf("dead_letters.kafka.basic_file: %s doesn't hold user:password", k.BasicFile)
	}
	switch k.Security {
	case config.KafkaScram256:
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case config.KafkaScram512:
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	default:
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	}
}

// letterbox makes letters of the writes that can't be placed.
type letterbox struct {
	desk     *deadletter.Desk
	identity client.Identity // says by which fields a request means a tenant
	// lost is called with a letter that couldn't be kept, and why.
	lost hook.Func2[*deadletter.Letter, error]
}

// Keep implements undeliverable.Letters.
func (b letterbox) Keep(ctx context.Context, u *undeliverable.Letter) (string, error) {
	l := &deadletter.Letter{
		Rule: u.Rule, Reason: u.Reason, Detail: u.Detail, Status: u.Status, Attempts: u.Attempts, Checked: u.Checked,
		Index: u.Index, Document: u.ID, Routing: u.Routing,
		Request: deadletter.Request{Method: string(u.Method), Target: targetOf(u), Fields: b.fields(u), Body: u.Body},
	}
	if u.Client != nil {
		sum := sha256.Sum256([]byte(u.Client.Name()))
		l.Client = hex.EncodeToString(sum[:8])
	}
	if g := &u.Base; g.Kind != session.KindNone {
		l.Base = &deadletter.Base{Kind: g.Kind.String(), SeqNo: g.Numbers.SeqNo, PrimaryTerm: g.Numbers.PrimaryTerm, Version: g.Version,
			View: g.View}
		if string(g.Stored) != string(g.View) {
			l.Base.Stored = g.Stored
		}
	}
	id, err := b.desk.Keep(ctx, l)
	if err != nil {
		b.lost.Call(l, err)
	}
	return id, err
}

// noLetter tells of a write that became no dead letter. While a disk is full, that may be every write.
func (a *App) noLetter(l *deadletter.Letter, err error) {
	if n, tell := a.lost.Count(); tell {
		a.log.Error("a write can't be placed, nor kept as a dead letter: its client gets the error", obs.KeyCount, n, "rule", l.Rule,
			obs.KeyReason, l.Reason, obs.KeyError, err.Error())
	}
}

// targetOf is the request's target without secrets.
func targetOf(u *undeliverable.Letter) string {
	query := uri.Select(u.Op.Query, func(name []byte) bool { return !wire.IsSecretParameter(name) })
	if len(query) == 0 {
		return string(u.Op.Path)
	}
	return string(u.Op.Path) + "?" + string(query)
}

// letterFields are those that a letter keeps: what the request asks for. It also keeps which tenant the request means. All else may be a
// secret.
var letterFields = wire.NewNames(
	[]string{"content-type", "content-encoding", "if-match", "if-none-match", "optimist-priority", "x-opaque-id"})

func (b letterbox) fields(u *undeliverable.Letter) (kept [][2]string) {
	all, _ := b.identity.Tenant(u.Fields, u.Op.Query)
	tenant := len(all)
	for _, f := range u.Fields {
		if letterFields.Has(f.Name) && !slices.ContainsFunc(all[:tenant], func(t wire.Field) bool { return bytes.EqualFold(t.Name, f.Name) }) {
			all = append(all, f)
		}
	}
	for _, f := range all {
		kept = append(kept, [2]string{string(f.Name), string(f.Value)})
	}
	return kept
}

// given is what a letter is based on; nil if nobody knows.
func given(l *deadletter.Letter) *base.Preset {
	b := l.Base
	if b == nil {
		return nil
	}
	g := &base.Preset{Version: b.Version, View: b.View, Stored: b.Stored}
	g.Numbers.SeqNo, g.Numbers.PrimaryTerm = b.SeqNo, b.PrimaryTerm
	if g.Stored == nil {
		g.Stored = g.View
	}
	for _, kind := range []session.Kind{session.KindRead, session.KindView, session.KindAbsent, session.KindExplicit} {
		if kind.String() == b.Kind {
			g.Kind = kind
			return g
		}
	}
	return nil
}

// replayLetter makes a letter's write again by the credentials of whoever asks.
func (a *App) replayLetter(ctx context.Context, l *deadletter.Letter, authorization string, overwrite bool) deadletter.Written {
	again := &intercept.Again{Method: l.Request.Method, Target: l.Request.Target, Body: l.Request.Body, Rule: l.Rule, Name: l.ID,
		Preset: given(l), Overwrite: overwrite}
	for _, f := range l.Request.Fields {
		again.Fields = append(again.Fields, wire.Field{Name: []byte(f[0]), Value: []byte(f[1])})
	}
	if authorization != "" {
		again.Fields = append(again.Fields, wire.Field{Name: []byte("Authorization"), Value: []byte(authorization)})
	}
	done, err := a.interceptor.Again(ctx, again)
	if err != nil {
		return deadletter.Written{Reason: err.Error()}
	}
	w := deadletter.Written{Status: done.Status, Outcome: done.Outcome, Unknown: done.Unknown}
	gone := done.Status == http.StatusNotFound && gjson.GetBytes(done.Body, "result").Str == respond.NotFound // of a delete
	if w.Done = done.Status >= 200 && done.Status < 300 || gone; !w.Done {
		w.Reason = reasonOf(done.Body)
	}
	return w
}
