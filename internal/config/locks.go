package config

import "strings"

// Locks are the paths under `_lock`: global, document and tree locks with leases, queues and tokens. They work whatever the mode is, since
// nobody gets one who doesn't ask.
type Locks struct {
	// Path is the segment under which locks are: `/_lock/global/{name}`, `/{index}/_lock/doc/{id}`. Default /_lock. It has to begin with
	// `/_`, so that no index has its name. Empty switches locks off: requests for them go to the engine.
	Path string `json:"path"`

	// Index is where the locks' documents are, made with the first lock. Default optimist-locks. Optimist's own credentials
	// (upstream.auth) need the rights to create, read and write it. Danger: deleting it forgets who holds what, and tokens may start
	// again from lower ones.
	Index string `json:"index"`

	// Scripts is auto (default: found out with the first lock), always or never. With scripts the engine's clock judges leases. Without,
	// a lease has lapsed when a proxy has seen it unchanged for its ttl, so that a dead holder's lock can take twice its ttl to be
	// free. The first proxy on an index decides for all: it is written in the index.
	Scripts Scripts `json:"scripts"`

	// TTL is how long a lease is if the request says nothing. Default 30s.
	TTL Duration `json:"ttl"`

	// MaxTTL is how long a lease may be at most. Default 24h. A dead holder's lock is free after its lease, not before.
	MaxTTL Duration `json:"max_ttl"`

	// Wait is how long a request waits for a lock that somebody else has, if it says nothing.
	Wait Wait `json:"wait"`

	// Overtake is how many of the foreground may go past one of the background that waits. Default 16. 1 lets the two classes take turns.
	Overtake int `json:"overtake"`

	// TreeSize is how many leases one tree may hold at once; one more is answered 429. Default 20000. All of them are in one document,
	// which is written whole with every change.
	TreeSize int `json:"tree_size"`
}

// Wait is how long requests wait for a lock, by their class.
type Wait struct {
	// Foreground is for requests that say nothing, or `priority: foreground`. Default 2s. 0: they don't wait.
	Foreground Duration `json:"foreground"`

	// Background is for those with `priority: background`. Default 2s.
	Background Duration `json:"background"`

	// Max is how long a request may ask to wait. Default 1h.
	Max Duration `json:"max"`
}

// Scripts is whether locks use the engine's scripts.
type Scripts string

// The values of Scripts.
const (
	ScriptsAuto   Scripts = "auto"
	ScriptsAlways Scripts = "always"
	ScriptsNever  Scripts = "never"
)

func (Scripts) choices() []string { return []string{"auto", "always", "never"} }

func (v *validator) locks() {
	l := &v.cfg.Locks
	if l.Path == "" {
		return
	}
	if name, ok := strings.CutPrefix(l.Path, "/_"); !ok || name == "" || strings.ContainsAny(name, "/?#%& ") {
		v.fail("locks.path", "%q is no path for locks: one segment that begins with /_, as in /_lock", l.Path)
	}
	if l.Index == "" || l.Index != strings.ToLower(l.Index) || strings.ContainsAny(l.Index, ` "*\<|,>/?#:`) || strings.ContainsAny(l.Index[:1], "-_+") {
		v.fail("locks.index", "%q is no index's name", l.Index)
	}
	v.positive("locks.ttl", l.TTL)
	v.positive("locks.max_ttl", l.MaxTTL)
	if l.TTL > l.MaxTTL {
		v.fail("locks.ttl", "%s is longer than locks.max_ttl, %s", l.TTL, l.MaxTTL)
	}
	if l.Wait.Foreground > l.Wait.Max || l.Wait.Background > l.Wait.Max {
		v.fail("locks.wait", "a class waits longer than locks.wait.max, %s", l.Wait.Max)
	}
	v.atLeast("locks.overtake", l.Overtake, 1)
	v.atLeast("locks.tree_size", l.TreeSize, 1)
}
