package es

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/coding"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// anyOptimist is a field that only optimist reads, with a value that it refuses in every mode and with every request.
var anyOptimist = wire.Field{Name: []byte("Optimist-Dry-Run"), Value: []byte("are you one")}

// IsOptimist asks whether another optimist answers in place of the engine. An engine doesn't know the field of the question. node is the
// URL of the node that is asked; empty: any. The errors are those of the upstream.
func IsOptimist(ctx context.Context, up Doer, node string) (bool, error) {
	res, err := up.Do(ctx, &upstream.Request{Method: http.MethodGet, Target: []byte("/"), Own: true, Node: node, Repeatable: true,
		Fields: []wire.Field{acceptJSON, anyOptimist}})
	if err != nil {
		return false, err
	}
	defer res.Release()
	body, _ := coding.Decode(res.Payload, res.Get("Content-Encoding"), maxAnswer)
	return res.Status == http.StatusBadRequest && gjson.GetBytes(body, "error.type").Str == "invalid_dry_run", nil
}
