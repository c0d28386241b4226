// Package idempotency keeps the results of requests with an Idempotency-Key, in an index of the engine. It makes a record before
// a request is carried out, and completes the record with the answer afterwards. So a repeat gets the same answer, through any
// proxy and at any time, and nothing is done twice.
//
// It doesn't know what requests do. A record that was never completed means that nobody knows the outcome. A repeat is carried
// out again if the index was deleted, or if the record has expired.
package idempotency

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"optimist/internal/doc"
	"optimist/internal/share"
	"optimist/internal/wire"
)

var (
	// ErrStore reports that the index couldn't be asked, or refuses. Nothing of the request was done.
	ErrStore = errors.New("the record of the Idempotency-Key can't be kept")
	// ErrOther reports a key that was used for another request. Nothing was done.
	ErrOther = errors.New("the Idempotency-Key was used for another request")
	// errOtherWay reports the first request, with fields or an address by which a gateway may send it elsewhere.
	errOtherWay = fmt.Errorf("%w: that one had other headers, or came from another address, and so may have gone to another tenant", ErrOther)
	// ErrUnderWay reports a request that is perhaps still being carried out.
	ErrUnderWay = errors.New("a request with this Idempotency-Key is under way")
	// ErrUnknown reports a request without a recorded end.
	ErrUnknown = errors.New("the outcome of the first request with this Idempotency-Key is unknown")
	// ErrTooLong reports an answer that was too large to be kept.
	ErrTooLong = errors.New("the request was carried out, and its answer was too large to be kept")
	// ErrBadKey reports a field that is no key.
	ErrBadKey = errors.New("Idempotency-Key has to be one string of 1 to 255 printable ASCII characters, in quotes or without")
)

// Key names a request for all who may repeat it.
type Key struct {
	id          string // of the record
	fingerprint string // of the request
	way         string // that the request takes
	tokens      []int64
	client      share.Client
}

// By is the key of the same request on its way: by all that may send it to one engine or another, and that the client doesn't stand for.
func (k Key) By(way []byte) Key {
	k.way = hex.EncodeToString(digest([]byte(k.id), way)) // with the id, so that nobody can try which secrets a field may have
	return k
}

// Under is the key of the same request under locks with these tokens. Another try of it may be under others.
func (k Key) Under(tokens []int64) Key {
	k.tokens = tokens
	return k
}

// At is the key of the same request, whose record is kept by connections of this client.
func (k Key) At(client share.Client) Key {
	k.client = client
	return k
}

// NewKey makes the Key of a client, by its credentials or whatever stands for them, for a request of these parts.
func NewKey(client []byte, key string, request ...[]byte) Key {
	return Key{id: base64.RawURLEncoding.EncodeToString(digest(client, []byte(key))), fingerprint: hex.EncodeToString(digest(request...))}
}

func digest(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil)
}

// maxKey is how many characters a key may have.
const maxKey = 255

// ReadKey reads the field Idempotency-Key: a string of structured fields (RFC 8941), or the same without the quotes, as many clients send
// it. found is false where there is none.
func ReadKey(fields []wire.Field) (key string, found bool, err error) {
	for _, f := range fields {
		if !wire.EqualFold(f.Name, "idempotency-key") {
			continue
		}
		if found {
			return "", true, ErrBadKey
		}
		found = true
		if key, err = parseKey(f.Value); err != nil {
			return "", true, err
		}
	}
	return key, found, nil
}

func parseKey(v []byte) (string, error) {
	quoted := len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"'
	if quoted {
		v = v[1 : len(v)-1]
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c < ' ' || c > '~', c == '"', !quoted && (c == ' ' || c == ',' || c == ';'):
			return "", ErrBadKey
		case c == '\\' && quoted:
			if i++; i == len(v) || v[i] != '"' && v[i] != '\\' {
				return "", ErrBadKey
			}
			c = v[i]
		}
		out = append(out, c)
	}
	if len(out) == 0 || len(out) > maxKey {
		return "", ErrBadKey
	}
	return string(out), nil
}

// Answer is the answer to the first request, for all repeats.
type Answer struct {
	Status int
	Fields []wire.Field
	Body   []byte
}

// record is the document of a key.
type record struct {
	Fingerprint string      `json:"fingerprint"`
	Way         string      `json:"way,omitempty"`    // as in Key; empty: an earlier program made the record
	Owner       string      `json:"owner"`            // the process that carries the request out
	Since       int64       `json:"since"`            // ms, by the owner's clock
	Until       int64       `json:"until"`            // when it expires
	Tokens      []int64     `json:"tokens,omitempty"` // of the locks under which it is carried out
	Done        bool        `json:"done"`
	Status      int         `json:"status,omitempty"`
	Fields      [][2]string `json:"fields,omitempty"`
	Body        []byte      `json:"body,omitempty"` // as base64
	TooLong     bool        `json:"too_long,omitempty"`

	numbers doc.Numbers
}

func parseRecord(source []byte, n doc.Numbers) (*record, error) {
	r := &record{numbers: n}
	if err := json.Unmarshal(source, r); err != nil || r.Fingerprint == "" {
		return nil, fmt.Errorf("%w: its index holds a document that is no record: %.100s", ErrStore, source)
	}
	return r, nil
}

// isOf returns nil if the record is the key's. It is ErrOther if it is of another request.
func (r *record) isOf(key Key) error {
	switch {
	case r.Fingerprint != key.fingerprint:
		return ErrOther
	case r.Way != "" && r.Way != key.way:
		return errOtherWay
	}
	return nil
}

// answer is what the record says of a request that is repeated.
func (r *record) answer() (*Answer, error) {
	if r.TooLong {
		return nil, fmt.Errorf("%w: it was a %d", ErrTooLong, r.Status)
	}
	a := &Answer{Status: r.Status, Body: r.Body}
	for _, f := range r.Fields {
		a.Fields = append(a.Fields, wire.Field{Name: []byte(f[0]), Value: []byte(f[1])})
	}
	return a, nil
}

// complete puts the answer into the record.
func (r *record) complete(a *Answer, limit int64) {
	r.Done, r.Status = true, a.Status
	size := int64(len(a.Body))
	for _, f := range a.Fields {
		size += int64(len(f.Name) + len(f.Value))
	}
	if r.TooLong = size > limit; r.TooLong {
		return
	}
	r.Body = a.Body
	for _, f := range a.Fields {
		r.Fields = append(r.Fields, [2]string{string(f.Name), string(f.Value)})
	}
}

func (r *record) expired(now time.Time) bool { return now.UnixMilli() >= r.Until }
