package admin

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"optimist/internal/obs"
	"optimist/internal/rule"
)

// index lists what there is.
func (s *Server) index(ctx *fasthttp.RequestCtx) {
	answer(ctx, fasthttp.StatusOK, struct {
		Name    string            `json:"name"`
		Version string            `json:"version"`
		Paths   map[string]string `json:"paths"`
	}{"optimist, admin listener", s.o.Build.Version, map[string]string{
		"/_optimist/health": "is the process alive; nodes, mode, uptime",
		"/_optimist/ready":  "can it serve requests: 200, else 503 and why",
		"/_optimist/mode":   `GET, or PUT {"mode": "guard" | "observe" | "off"}`,
		"/_optimist/config": "the configuration in force",
		"/_optimist/locks":  `the locks that are held; /_optimist/locks/{lock}: GET, DELETE; POST /_optimist/locks/_release {"owner": …}`,
		"/_optimist/dead-letters": `writes that could not be placed; /_optimist/dead-letters/{id}: GET, DELETE; POST {id}/_replay; ` +
			`POST /_optimist/dead-letters/_replay or _delete {"rule": …} or {"all": true}`,
		"/_optimist/undo":        "journals of locks with undo that are open, or have left dead letters; /_optimist/undo/{lock}: its writes",
		"/_optimist/hot":         "the documents with the most conflicts; ?top=20",
		"/_optimist/suggestions": "suggested rules, from the conflicts so far; ?index=shop",
		"/_optimist/version":     "which program this is",
		"/metrics":               "Prometheus metrics",
		"/debug/pprof":           "profiles; only with a token or a certificate",
	}})
}

// health answers 200 as long as the process can answer at all: restarting it wouldn't bring the engine back.
func (s *Server) health(ctx *fasthttp.RequestCtx) {
	h := struct {
		Status string `json:"status"`
		Ready  bool   `json:"ready"`
		Reason string `json:"reason,omitempty"`
		Mode   string `json:"mode,omitempty"`
		Uptime string `json:"uptime,omitempty"`
		Nodes  []Node `json:"nodes,omitempty"`
	}{Status: "alive", Ready: true}
	trusted := s.o.Access.trusts(ctx)
	if trusted {
		h.Mode, h.Uptime, h.Nodes = s.o.Switch.Mode().String(), time.Since(s.started).Round(time.Second).String(), s.o.Nodes()
	}
	if err := s.o.Ready(); err != nil {
		h.Ready = false
		if trusted {
			h.Reason = err.Error()
		}
	}
	answer(ctx, fasthttp.StatusOK, h)
}

func (s *Server) ready(ctx *fasthttp.RequestCtx) {
	type readiness struct {
		Ready  bool   `json:"ready"`
		Reason string `json:"reason,omitempty"`
	}
	if err := s.o.Ready(); err != nil {
		r := readiness{}
		if s.o.Access.trusts(ctx) { // it names nodes
			r.Reason = err.Error()
		}
		answer(ctx, fasthttp.StatusServiceUnavailable, r)
		return
	}
	answer(ctx, fasthttp.StatusOK, readiness{Ready: true})
}

func (s *Server) version(ctx *fasthttp.RequestCtx) {
	answer(ctx, fasthttp.StatusOK, struct {
		Version  string `json:"version"`
		Revision string `json:"revision"`
		Go       string `json:"go"`
	}{s.o.Build.Version, s.o.Build.Revision, s.o.Build.Go})
}

func (s *Server) config(ctx *fasthttp.RequestCtx) {
	body, err := s.o.Config()
	if err != nil {
		fail(ctx, fasthttp.StatusInternalServerError, "internal_error", err.Error())
		return
	}
	raw(ctx, fasthttp.StatusOK, body)
}

// defaultTop is how many documents are told of, unless the request says otherwise.
const defaultTop = 20

func (s *Server) hot(ctx *fasthttp.RequestCtx) {
	top := defaultTop
	if v := ctx.QueryArgs().Peek("top"); v != nil {
		n, err := strconv.Atoi(string(v))
		if err != nil || n < 1 {
			fail(ctx, fasthttp.StatusBadRequest, "invalid_request", "top: want a number from 1 on")
			return
		}
		top = n
	}
	answer(ctx, fasthttp.StatusOK, struct {
		Documents any `json:"documents"`
	}{s.o.Hot(top)})
}

func (s *Server) suggestions(ctx *fasthttp.RequestCtx) {
	answer(ctx, fasthttp.StatusOK, s.o.Suggestions(string(ctx.QueryArgs().Peek("index"))))
}

// modeBody is what /_optimist/mode takes and answers.
type modeBody struct {
	Mode   string `json:"mode"`
	Before string `json:"before,omitempty"`
}

func (s *Server) mode(ctx *fasthttp.RequestCtx) {
	answer(ctx, fasthttp.StatusOK, modeBody{Mode: s.o.Switch.Mode().String()})
}

func (s *Server) setMode(ctx *fasthttp.RequestCtx) {
	var want struct {
		Mode string `json:"mode"`
	}
	if err := json.Unmarshal(ctx.PostBody(), &want); err != nil {
		fail(ctx, fasthttp.StatusBadRequest, "invalid_request", `want {"mode": "guard" | "observe" | "off"}: `+err.Error())
		return
	}
	mode, ok := rule.ParseMode(want.Mode)
	if !ok {
		fail(ctx, fasthttp.StatusBadRequest, "invalid_request", `want {"mode": "guard" | "observe" | "off"}`)
		return
	}
	before := s.o.Switch.SetMode(mode)
	s.o.Changed.Call(mode)
	s.o.Log.Warn("mode changed", obs.KeyMode, mode.String(), "before", before.String(), obs.KeyClient, ctx.RemoteAddr().String())
	answer(ctx, fasthttp.StatusOK, modeBody{Mode: mode.String(), Before: before.String()})
}
