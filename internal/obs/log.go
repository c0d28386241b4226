package obs

import (
	"io"
	"log/slog"
)

// Logger writes lines to w as text (logfmt) or, with json, as JSON. level may be changed at any time. Nothing that is logged may hold
// credentials, bodies or query strings; no handler can see to that, so callers must.
func Logger(w io.Writer, json bool, level *slog.LevelVar) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// Level is the level of a name that the configuration knows: debug, info, warn, error. Another one is info.
func Level(name string) (l slog.Level) {
	_ = l.UnmarshalText([]byte(name)) // the configuration was checked
	return l
}
