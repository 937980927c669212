package config

import "slices"

// urls reads the addresses of several instances of one server.
func (r *serverReader) urls(path string, n *node) {
	list, ok := r.l.strings(path, n)
	if !ok {
		return
	}
	if len(list) == 0 {
		r.fail(path, n.offset, "must have an address")
		return
	}
	r.urlsAt = place{path, n.offset}
	for i := range list {
		list[i] = r.expand(index(path, i), n.items[i].offset, list[i])
		r.urlSecrets(list[i])
		if slices.Contains(list[:i], list[i]) {
			r.fail(index(path, i), n.items[i].offset, "is there twice")
		}
	}
	r.s.URL, r.s.URLs = list[0], list
	if r.urlAt.path == "" {
		r.urlAt, r.httpURL = place{index(path, 0), n.items[0].offset}, false
	}
}

// checkInstances notes what is wrong with the instances beside the first, and leaves one
// address alone to URL.
func (r *serverReader) checkInstances() {
	switch {
	case r.urlsAt.path == "":
		return
	case r.urlAt.path != index(r.urlsAt.path, 0):
		r.fail(r.urlsAt.path, r.urlsAt.offset, "is there beside url; put all addresses into urls")
	case r.s.Type == Stdio || len(r.s.URLs) == 1:
		r.s.URLs = nil
	}
	for i := 1; i < len(r.s.URLs); i++ {
		r.checkURL(place{index(r.urlsAt.path, i), r.urlsAt.offset}, r.s.URLs[i])
	}
}
