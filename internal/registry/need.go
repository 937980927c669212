package registry

// Need notes that a request needs an upstream, or that the first list of tools was answered.
func (r *Registry) Need() { r.need() }

// Needed returns a channel that the first Need closes. Starting many processes before that would delay the first answers.
func (r *Registry) Needed() <-chan struct{} { return r.needed }

// Prefer lets a server start before the others, as a caller is about to wait for it. It does not start an idle server.
func (r *Registry) Prefer(name string) {
	r.mu.Lock()
	r.preferred = name
	r.mu.Unlock()
	if e := r.running(name); e != nil {
		e.upstream.Prefer()
	}
}

// Ask starts a server if it is idle.
func (r *Registry) Ask(name string) {
	if e := r.running(name); e != nil {
		for _, u := range e.upstreams() {
			u.Ask()
		}
		r.Refresh()
	}
}

// Retry ends the pause of an unavailable server before its next attempt.
func (r *Registry) Retry(name string) {
	if e := r.running(name); e != nil {
		for _, u := range e.upstreams() {
			u.Retry()
		}
	}
}
