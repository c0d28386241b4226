package lockrouter

// Lanes is how many locks something is kept of.
func Lanes(r *Router) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lanes)
}
