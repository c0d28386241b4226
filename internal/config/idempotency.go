package config

import "optimist/internal/unit"

// Idempotency is how writes with the header `Idempotency-Key` are carried out once, however often clients send them.
type Idempotency struct {
	// Index is where optimist keeps its answers to such requests. optimist creates it with the first one; `upstream.auth`
	// needs the rights to create, read and write it, and nobody else should be able to read it. Empty: the header means
	// nothing, and goes to the engine. Danger: if you delete the index, repeats are carried out again.
	Index string `json:"index"`

	// Keep is how long an answer is kept. A repeat after that is carried out again.
	Keep unit.Duration `json:"keep" min:"1m" max:"8760h"`

	// MaxAnswer is up to how many bytes an answer is kept. A repeat with a longer answer, as of a large `_bulk`, gets a
	// 409.
	MaxAnswer unit.Size `json:"max_answer" min:"1KiB" max:"16MiB"`
}

func (v *validator) idempotency() {
	switch index := v.cfg.Idempotency.Index; {
	case index == "":
	case !indexName(index):
		v.fail("idempotency.index", "%q is not an index's name", index)
	case index == v.cfg.Locks.Index && v.cfg.Locks.Path != "":
		v.fail("idempotency.index", "%q is where the locks' documents are (locks.index)", index)
	case index == v.cfg.DeadLetters.Index && v.cfg.DeadLetters.Sink == SinkEngine:
		v.fail("idempotency.index", "%q is where the dead letters are (dead_letters.index)", index)
	}
}
