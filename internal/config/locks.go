package config

import (
	"net"
	"path"
	"strings"

	"optimist/internal/unit"
)

// Locks are global, document and tree locks with leases, queues and tokens. They work in every mode.
type Locks struct {
	// Path is the segment under which locks are: `/_lock/global/{name}`, `/{index}/_lock/doc/{id}`. It must begin with
	// `/_`. Empty switches locks off: requests for them go to the engine.
	Path string `json:"path"`

	// Store is what keeps the locks: `engine` (default), `zookeeper` or `memcached`. The last two have no trees and no
	// list of locks (400). memcached is best effort, and has no queue. All proxies need the same store.
	Store LockStore `json:"store"`

	// ZooKeeper is the ensemble, for `store: zookeeper`.
	ZooKeeper ZooKeeper `json:"zookeeper"`

	// Memcached is the servers, for `store: memcached`.
	Memcached Memcached `json:"memcached"`

	// Index is where the locks are. optimist creates it with the first lock; `upstream.auth` needs the rights to create,
	// read and write it. Danger: if you delete it, optimist forgets all holders, and tokens may start again from lower
	// ones.
	Index string `json:"index"`

	// Scripts is `auto` (default: optimist finds out with the first lock), `always` or `never`. With scripts, the engine's
	// clock judges leases. Without, a proxy has to see a lease unchanged for its ttl; so it can take twice the ttl until a
	// dead holder's lock is free. The first proxy on an index decides for all.
	Scripts Scripts `json:"scripts"`

	// TTL is how long a lease is, if the request doesn't say.
	TTL unit.Duration `json:"ttl" min:"1nanos"`

	// MaxTTL is how long a lease may be at most. A dead holder's lock is free after its lease, not before.
	MaxTTL unit.Duration `json:"max_ttl" min:"1nanos"`

	// Wait is how long requests wait for a lock.
	Wait Wait `json:"wait"`

	// Overtake is how many requests of the foreground may overtake one of the background that waits. With 1 the two classes
	// take turns.
	Overtake int `json:"overtake" min:"1"`

	// Chain is how many waiting clients optimist may promise the same lock ahead, so that it goes from client to client
	// without waiting for the engine. 0 switches it off. Only for locks that nobody keeps for long, if scripts judge
	// leases, and not for trees. Danger: if optimist is killed, its promises keep others waiting for up to `ttl`.
	Chain int `json:"chain" min:"0" max:"15"`

	// TreeSize is how many leases one tree may hold at once. One more gets a 429. All of them are in one document, which
	// is written whole with every change: no more than 512 bytes each on average. One owner, or one client's address, gets
	// at most seven times what is free.
	TreeSize int `json:"tree_size" min:"1"`

	// Compat makes the documents of one index locks, by the requests of Elasticsearch: The Definitive Guide.
	Compat Compat `json:"compat"`
}

// Compat is an index whose documents are locks, as in the Definitive Guide's chapter on concurrency. The book's creates,
// scripted updates and deletes work as printed, and the locks have leases.
type Compat struct {
	// Index is the name of this index in requests. Empty: there is none. Aliases go to the engine. Other requests to this
	// index are refused.
	Index string `json:"index"`

	// Type is the mapping type of locks in the path, as in `/fs/lock/1`. Requests without a type are for locks, too. Those
	// with another type go to the engine.
	Type string `json:"type"`

	// TTL is how long a lock lasts if nobody deletes it.
	TTL unit.Duration `json:"ttl" min:"1nanos"`
}

// Wait is how long a request waits for a lock that another owner has, if it doesn't say.
type Wait struct {
	// Foreground is for requests without a priority, or with `priority: foreground`. 0: they don't wait.
	Foreground unit.Duration `json:"foreground"`

	// Background is for requests with `priority: background`.
	Background unit.Duration `json:"background"`

	// Max is how long a request may ask to wait.
	Max unit.Duration `json:"max"`
}

// ZooKeeper is one ensemble. optimist logs in nowhere: whoever reaches the ensemble can see the locks, and remove them.
type ZooKeeper struct {
	// Servers are its addresses: host:port.
	Servers []string `json:"servers"`

	// Root is the node below which the locks are. optimist makes it. All proxies need the same one.
	Root string `json:"root"`

	// SessionTimeout is how long the ensemble waits for a proxy that it doesn't hear of, until the proxy's locks are free.
	// No lease is longer, whatever a request asks for. The ensemble has bounds of its own (minSessionTimeout,
	// maxSessionTimeout).
	SessionTimeout unit.Duration `json:"session_timeout" min:"100ms" max:"1h"`

	// ConnectionRetries is how often optimist tries again if there is no connection. Then the request for the lock gets a
	// 503.
	ConnectionRetries int `json:"connection_retries" min:"0" max:"1000"`

	// ConnectionDelay is the time between two of these tries.
	ConnectionDelay unit.Duration `json:"connection_delay" min:"1ms"`

	// Prefixes are how the names of the two classes' nodes begin.
	Prefixes Prefixes `json:"prefixes"`
}

// Prefixes are one for each class. The foreground's has to come before the background's in the alphabet.
type Prefixes struct {
	// Foreground is for requests without a priority, or with `priority: foreground`.
	Foreground string `json:"foreground"`

	// Background is for requests with `priority: background`.
	Background string `json:"background"`
}

// Memcached is one memcached, or several that share the locks by their names. Danger: a lock that memcached evicts, or
// loses with a restart, is free while its holder works. Start memcached with `-M`, so that it doesn't evict.
type Memcached struct {
	// Servers are its addresses: host:port. All proxies need the same ones in the same order.
	Servers []string `json:"servers"`

	// Prefix is how the keys of all locks begin.
	Prefix string `json:"prefix"`

	// Timeout is how long memcached may take for an answer. Then the request for the lock gets a 503.
	Timeout unit.Duration `json:"timeout" min:"1ms"`

	// Delay is the time between two tries of a request that waits, if it doesn't say.
	Delay unit.Duration `json:"delay" min:"1ms"`
}

// LockStore is what locks are kept in.
type LockStore string

// The values of LockStore.
const (
	StoreEngine    LockStore = "engine"
	StoreZooKeeper LockStore = "zookeeper"
	StoreMemcached LockStore = "memcached"
)

func (LockStore) choices() []string { return []string{"engine", "zookeeper", "memcached"} }

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
		if l.Compat.Index != "" {
			v.fail("locks.compat", "there are no locks: locks.path is empty")
		}
		return
	}
	v.compat(&l.Compat)
	v.lockStore(l)
	if name, ok := strings.CutPrefix(l.Path, "/_"); !ok || name == "" || strings.ContainsAny(name, "/?#%& ") {
		v.fail("locks.path", "%q is not a path for locks: one segment that begins with /_, as in /_lock", l.Path)
	}
	if !indexName(l.Index) {
		v.fail("locks.index", "%q is not an index's name", l.Index)
	}
	if l.TTL > l.MaxTTL {
		v.fail("locks.ttl", "%s is longer than locks.max_ttl, %s", l.TTL, l.MaxTTL)
	}
	if l.Wait.Foreground > l.Wait.Max || l.Wait.Background > l.Wait.Max {
		v.fail("locks.wait", "a class waits longer than locks.wait.max, %s", l.Wait.Max)
	}
}

func (v *validator) lockStore(l *Locks) {
	if l.Store != StoreEngine && l.Compat.Index != "" {
		v.fail("locks.compat.index", "the Definitive Guide's locks need locks.store: engine, not %s", l.Store)
	}
	v.servers(StoreMemcached, 11211, l.Memcached.Servers)
	v.servers(StoreZooKeeper, 2181, l.ZooKeeper.Servers)
	v.zooKeeper(&l.ZooKeeper)
	const longestPrefix = 64
	if p := l.Memcached.Prefix; p == "" || len(p) > longestPrefix || strings.ContainsFunc(p, isNoGraphic) {
		v.fail("locks.memcached.prefix", "%q doesn't begin keys: it has from 1 to 64 printable characters of ASCII without spaces", p)
	}
}

// isNoGraphic reports whether a character isn't one of ASCII's that can be seen.
func isNoGraphic(r rune) bool { return r <= ' ' || r > '~' }

func (v *validator) zooKeeper(z *ZooKeeper) {
	if root := z.Root; !strings.HasPrefix(root, "/") || root != path.Clean(root) || root == "/" || strings.HasPrefix(root, "/zookeeper") ||
		strings.ContainsFunc(root, isNoGraphic) {
		v.fail("locks.zookeeper.root", "%q is not the path of a node for locks, as in /optimist", root)
	}
	if p := z.Prefixes; strings.Trim(p.Foreground, alphanumerics) != "" || strings.Trim(p.Background, alphanumerics) != "" ||
		p.Foreground == "" || p.Foreground >= p.Background {
		v.fail("locks.zookeeper.prefixes", "%q and %q are not two words of letters and digits, the first before the second in the alphabet",
			p.Foreground, p.Background)
	}
}

// servers checks the addresses of a store of locks, whose usual port is port.
func (v *validator) servers(store LockStore, port int, list []string) {
	key, used := "locks."+string(store), v.cfg.Locks.Store == store
	switch {
	case used && len(list) == 0:
		v.fail(key, "store: %s needs servers, as in servers: [\"%s1:%d\"]", store, store, port)
	case !used && len(list) > 0:
		v.warn(key, "it has no effect where locks.store isn't %s", store)
	}
	for _, s := range list {
		if !isHostPort(s) {
			v.fail(key+".servers", "%q is not an address; write host and port", s)
		}
	}
}

// isHostPort reports whether a text is an address with a host and a port.
func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	return err == nil && host != "" && port != ""
}

func (v *validator) compat(c *Compat) {
	if c.Index == "" {
		return
	}
	if !indexName(c.Index) {
		v.fail("locks.compat.index", "%q is not an index's name", c.Index)
	}
	if c.Index == v.cfg.Locks.Index {
		v.fail("locks.compat.index", "%q is where the locks' own documents are (locks.index)", c.Index)
	}
	if c.Type == "" || strings.HasPrefix(c.Type, "_") && c.Type != "_doc" || strings.ContainsAny(c.Type, ",#/ ") {
		v.fail("locks.compat.type", "%q is not a mapping type's name", c.Type)
	}
	if c.TTL > v.cfg.Locks.MaxTTL {
		v.fail("locks.compat.ttl", "%s is longer than locks.max_ttl, %s", c.TTL, v.cfg.Locks.MaxTTL)
	}
}

// indexName reports whether the engine takes s as an index's name.
func indexName(s string) bool {
	return s != "" && s == strings.ToLower(s) && !strings.ContainsAny(s, ` "*\<|,>/?#:`) && !strings.ContainsAny(s[:1], "-_+")
}
