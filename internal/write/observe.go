package write

import (
	"optimist/internal/intent"
	"optimist/rewrite"
)

// observer looks on while a write is made: the account of a dry run is written by one.
type observer interface {
	Merger(*rewrite.Merger) intent.Merger
	Transformer(*rewrite.Transformer) intent.Transformer
}

// unobserved is for writes that nobody looks at.
type unobserved struct{}

func (unobserved) Merger(m *rewrite.Merger) intent.Merger                { return m }
func (unobserved) Transformer(t *rewrite.Transformer) intent.Transformer { return t }
