package admin

import (
	"bytes"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"optimist/internal/api"
	"optimist/internal/jsontext"
)

// answer writes v as JSON.
func answer(ctx *fasthttp.RequestCtx, status int, v any) {
	body, err := jsontext.Marshal(v)
	if err != nil {
		fail(ctx, fasthttp.StatusInternalServerError, "internal_error", err.Error())
		return
	}
	raw(ctx, status, body)
}

// raw writes JSON, indented: people read this with curl.
func raw(ctx *fasthttp.RequestCtx, status int, body []byte) {
	var text bytes.Buffer
	if json.Indent(&text, body, "", "  ") != nil { // it is none
		text.Reset()
		text.Write(body)
	}
	text.WriteByte('\n')
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(text.Bytes())
}

// fail answers in the shape of the engine's errors, as the data port does.
func fail(ctx *fasthttp.RequestCtx, status int, kind, reason string) {
	answer(ctx, status, json.RawMessage((&api.Error{Status: status, Type: kind, Reason: reason}).Append(nil)))
}
