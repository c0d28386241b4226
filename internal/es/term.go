package es

import (
	"context"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// Shard is one shard of an index (a concrete name, decoded).
type Shard struct {
	Index  string
	Number string
}

// PrimaryTerm asks a node under which primary term it sends writes to the shard. The term grows with every change of primary. The node
// (its URL) answers from its own copy of the cluster's state, which is what it has written by; another answers where it is down, and any
// where none is named. Errors: ErrNoIndex, ErrForbidden (it takes the cluster privilege monitor), *StatusError, and those of the upstream.
func (c *Client) PrimaryTerm(ctx context.Context, who Caller, s Shard, node string) (int64, error) {
	local := true
	req := esapi.ClusterStateRequest{
		Metric: []string{"metadata"}, Index: []string{segment(s.Index)}, Local: &local,
		FilterPath: []string{"metadata.indices.*.primary_terms"},
	}
	status, body, err := c.doAt(ctx, who, node, req)
	if err != nil {
		return 0, err
	}
	if status != http.StatusOK {
		return 0, failure(status, body)
	}
	term := gjson.GetBytes(body, "metadata.indices."+gjsonKey(s.Index)+".primary_terms."+gjsonKey(s.Number))
	if term.Int() <= 0 {
		return 0, ErrNoIndex
	}
	return term.Int(), nil
}
