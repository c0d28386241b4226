package es

import (
	"context"
	"errors"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// ErrNoTerm reports that the shards have different terms, and that it isn't known which one is meant.
var ErrNoTerm = errors.New("the index's shards have different primary terms")

// ErrOtherNode reports that the node that was to be asked didn't answer, and another one did.
var ErrOtherNode = errors.New("another node has answered, which may know less than the one that was to be asked")

// Shard is one shard of an index (a concrete name, decoded); without a number, whichever it is.
type Shard struct {
	Index  string
	Number string
}

// PrimaryTerm asks a node under which primary term it sends writes to the shard. The term grows with every change of primary. The node
// (its URL) answers from its own copy of the cluster's state, the one by which it has written. Another node may not have heard of a change
// yet, or be cut off. If no node is named, any node answers. Errors: ErrOtherNode, ErrNoTerm, ErrNoIndex, ErrForbidden (it takes the
// cluster privilege monitor), *StatusError, and those of the upstream.
func (c *Client) PrimaryTerm(ctx context.Context, caller Caller, s Shard, node string) (int64, error) {
	local := true
	req := esapi.ClusterStateRequest{
		Metric: []string{"metadata"}, Index: []string{Segment(s.Index)}, Local: &local,
		FilterPath: []string{"metadata.indices.*.primary_terms"},
	}
	a, err := c.doAt(ctx, caller, node, req)
	if err != nil {
		return 0, err
	}
	switch {
	case node != "" && a.Node != node:
		return 0, ErrOtherNode
	case a.Status != http.StatusOK:
		return 0, a.failure()
	}
	terms := gjson.GetBytes(a.Body, "metadata.indices."+gjsonKey(s.Index)+".primary_terms")
	var term int64
	terms.ForEach(func(number, t gjson.Result) bool {
		switch {
		case s.Number != "" && s.Number != number.Str:
		case term != 0 && term != t.Int():
			err = ErrNoTerm
		default:
			term = t.Int()
		}
		return true
	})
	if term <= 0 {
		return 0, ErrNoIndex
	}
	return term, err
}
