package config

import "optimist/internal/unit"

// Undo is how locks with `undo: true` have what was written under them undone, if their holder dies.
type Undo struct {
	// Auth is the credentials by which optimist keeps the journals and undoes writes. Default: none, and a lock with undo
	// is refused. They need the rights to create, read and write the index of the journals, and to read and write every
	// document that is written under such a lock. With the privilege view_index_metadata optimist sees whether an index
	// was made anew meanwhile.
	Auth Auth `json:"auth"`

	// Index is where the journals are. optimist creates it with the first lock with undo. It holds documents, so only
	// optimist should be able to read it. Danger: if you delete it, nothing is undone.
	Index string `json:"index"`

	// MaxDocuments is how many writes may be made under one lock with undo. More are refused with a 413. A rollback holds
	// all of them in memory.
	MaxDocuments int `json:"max_documents" min:"1" max:"1000000"`

	// MaxBytes is how many bytes their documents may have, before and after the writes. More are refused with a 413.
	MaxBytes unit.Size `json:"max_bytes" min:"1KiB" max:"1GiB"`

	// Grace is for late creates, which no guard can stop: for so long a rollback looks again for the document. The lock
	// isn't free before.
	Grace unit.Duration `json:"grace" min:"0s" max:"5m"`
}

func (v *validator) undo() {
	v.auth("undo.auth", &v.cfg.Undo.Auth)
	others := map[string]string{v.cfg.Locks.Index: "locks.index", v.cfg.DeadLetters.Index: "dead_letters.index",
		v.cfg.Idempotency.Index: "idempotency.index"}
	switch index := v.cfg.Undo.Index; {
	case !indexName(index):
		v.fail("undo.index", "%q is not an index's name", index)
	case others[index] != "":
		v.fail("undo.index", "%q is an index of optimist's already (%s)", index, others[index])
	}
}
