package config

import "slices"

// urls reads the addresses of several instances of one server.
func (r *serverReader) urls(n *node) {
	list, ok := r.l.strings(n)
	if !ok {
		return
	}
	if len(list) == 0 {
		r.fail(n, "must have an address")
		return
	}
	r.urlsAt = n
	for i := range list {
		list[i] = r.expand(n.items[i])
		r.urlSecrets(list[i])
		if slices.Contains(list[:i], list[i]) {
			r.fail(n.items[i], "is there twice")
		}
	}
	r.s.URL, r.s.URLs = list[0], list
	if r.urlAt == nil {
		r.urlAt, r.httpURL = n.items[0], false
	}
}

// checkInstances checks all instances but the first, which is URL too. URLs is nil for a single address.
func (r *serverReader) checkInstances() {
	switch {
	case r.urlsAt == nil:
		return
	case r.urlAt != r.urlsAt.items[0]:
		r.fail(r.urlsAt, "is there beside url; put all addresses into urls")
	case r.s.Type == Stdio || len(r.s.URLs) == 1:
		r.s.URLs = nil
	}
	for i := 1; i < len(r.s.URLs); i++ {
		r.checkURL(r.urlsAt.items[i], r.s.URLs[i])
	}
}
