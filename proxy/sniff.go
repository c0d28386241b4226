package proxy

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/coding"
	"optimist/internal/jsontext"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Sniffing says what happens to the addresses in the answers that sniffing clients ask for.
type Sniffing uint8

// The values. The zero value is the safe one.
const (
	// SniffRewrite replaces the nodes' http.publish_address by optimist's address: clients that sniff stay with optimist.
	SniffRewrite Sniffing = iota
	// SniffPass leaves the addresses as they are: clients that sniff go around optimist.
	SniffPass
)

// maxDecoded bounds in bytes what a compressed answer may become: that of a cluster of thousands of nodes.
const maxDecoded = 16 << 20

// forwardSniffing forwards a request for the nodes' addresses and rewrites its answer.
func (x *Exchange) forwardSniffing() error {
	if err := x.composeRequest(&ForwardOptions{Drop: []string{"Accept-Encoding"}}); err != nil {
		return err
	}
	resp, err := x.c.up.Do(&x.up)
	if x.in.streaming {
		x.takeBodyBack()
	}
	if err != nil {
		return err
	}
	defer resp.Release()
	x.c.server.LearnProduct(&resp.Head)
	body := resp.Payload
	if resp.Status == http.StatusOK && bytes.Contains(resp.Get("Content-Type"), []byte("json")) {
		if body, err = replaceAddresses(&x.c.taken, resp, addressFor(x.c.server.advertise, x.head.Get("Host"))); err != nil {
			return err
		}
	}
	framing := x.composeHead(&resp.Head, nil)
	x.recordStatus(resp.Status)
	x.sent = int64(len(body))
	_ = x.sendPiece(framing, body, true)
	return nil
}

// replaceAddresses returns an answer's body with the nodes' addresses replaced, and without its content coding. It changes the
// answer's head to match. What that takes, of an answer that is compressed, is taken from room.
func replaceAddresses(room coding.Room, resp *upstream.Response, address []byte) ([]byte, error) {
	// The request asked for no coding. An engine, or a proxy in front of it, may use one all the same.
	body, err := coding.DecodeIn(room, resp.Payload, resp.Get("Content-Encoding"), maxDecoded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEncoding, err)
	}
	if body, err = rewriteAddresses(body, address); err != nil {
		return nil, err
	}
	resp.Fields = without(resp.Fields, "Content-Encoding")
	if resp.Body == wire.Length {
		resp.Length = int64(len(body))
	}
	return body, nil
}

// rewriteAddresses returns body with every nodes.*.http.publish_address replaced by address. All other bytes stay as they are.
func rewriteAddresses(body, address []byte) ([]byte, error) {
	if !jsontext.Valid(body) {
		return nil, errNotJSON
	}
	type span struct{ from, to int }
	var spans []span
	gjson.GetBytes(body, "nodes").ForEach(func(_, node gjson.Result) bool {
		if v := node.Get("http.publish_address"); v.Type == gjson.String && v.Index > 0 {
			spans = append(spans, span{v.Index, v.Index + len(v.Raw)})
		}
		return true
	})
	if len(spans) == 0 {
		return body, nil
	}
	out := make([]byte, 0, len(body)+len(spans)*len(address))
	at := 0
	for _, s := range spans {
		out = append(out, body[at:s.from]...)
		out = gjson.AppendJSONString(out, string(address))
		at = s.to
	}
	return append(out, body[at:]...), nil
}

// addressFor is the address that a client gets: the configured address, else the one to which the client has sent its request. Clients
// parse it as host:port, so that a Host without a port gets the port of plain HTTP.
func addressFor(advertise string, host []byte) []byte {
	if advertise != "" {
		return []byte(advertise)
	}
	if hasPort(host) {
		return host
	}
	return append(bytes.Clone(host), ":80"...)
}

// hasPort reports whether a Host field's value ends in a port.
func hasPort(host []byte) bool {
	i := bytes.LastIndexByte(host, ':')
	return i >= 0 && i > bytes.LastIndexByte(host, ']')
}
