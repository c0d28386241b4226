package admin

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"optimist/internal/api"
)

// answer writes v as JSON, indented: people read this with curl.
func answer(ctx *fasthttp.RequestCtx, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		fail(ctx, fasthttp.StatusInternalServerError, "internal_error", err.Error())
		return
	}
	raw(ctx, status, body)
}

func raw(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(append(body, '\n'))
}

// fail answers in the shape of the engine's errors, as the data port does.
func fail(ctx *fasthttp.RequestCtx, status int, kind, reason string) {
	answer(ctx, status, json.RawMessage((&api.Error{Status: status, Type: kind, Reason: reason}).Append(nil)))
}
