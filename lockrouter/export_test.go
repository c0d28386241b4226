package lockrouter

// Lanes is how many locks something is kept of.
func Lanes(r *Router) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lanes)
}

// Doubts is how many leases the Router still has to give back, and of how many bytes their list is.
func Doubts(r *Router) (n, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.doubts.list), r.doubts.size
}

// MaxDoubts bounds these bytes.
const MaxDoubts = maxDoubts
