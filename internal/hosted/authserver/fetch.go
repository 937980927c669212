package authserver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/sanitize"
)

// These constants limit how many fetches run at the same time. maxFetches is for all fetches together. maxFetchesOfAddress is for
// the fetches that were started by requests from one IP address; behind a proxy, all requests come from one address.
// maxFetchesOfHost is for the fetches from one host.
const (
	maxFetches          = 256
	maxFetchesOfAddress = 64
	maxFetchesOfHost    = 16
)

// fetch is a download of a client document. All requests that need the document share it. Any stranger can name the host of a
// document, and the host may never answer. Therefore, when there are too many fetches, mcpx ends an old fetch in favor of a new
// one.
type fetch struct {
	id      string
	address netip.Addr // IP address from which the request that began the fetch came
	host    string
	waiting int // number of requests that wait for the fetch; guarded by documents.mu
	end     context.CancelCauseFunc
	done    chan struct{} // closed once client or err is set
	client  *client
	err     error // of type *fault
}

// errCrowded is the error of a fetch that was ended in favor of a newer one.
var errCrowded = errors.New("too many client documents are being fetched")

// join returns the client that the document at the URL id describes, if this client is cached. Otherwise it returns the fetch of
// the document. The caller waits until its field done is closed, or gives up and calls leave. address is the IP address that the
// request comes from, and u is the parsed id.
func (d *documents) join(id string, address netip.Addr, u *url.URL) (*client, *fetch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept := d.kept.Find(id); kept != nil && time.Now().Before(kept.until) {
		return kept.client, nil
	}
	at := slices.IndexFunc(d.fetches, func(f *fetch) bool { return f.id == id })
	if at >= 0 {
		d.fetches[at].waiting++
		return nil, d.fetches[at]
	}
	f := &fetch{id: id, address: address, host: strings.ToLower(u.Hostname()), waiting: 1, done: make(chan struct{})}
	d.makeRoom(maxFetchesOfHost, func(other *fetch) bool { return other.host == f.host })
	d.makeRoom(maxFetchesOfAddress, func(other *fetch) bool { return other.address == address })
	d.makeRoom(maxFetches, func(*fetch) bool { return true })
	d.fetches = append(d.fetches, f)
	ctx, end := context.WithCancelCause(d.ctx)
	f.end = end
	go d.run(ctx, f, u) // ends after documentFetch at the latest, or when f.end is called
	return nil, f
}

// makeRoom ends one fetch if there are already limit fetches. It counts only fetches for which the function counted returns true.
// Among these fetches, it ends the oldest one from the host with the most of them. So a server that never answers loses its own
// fetches first. The caller holds mu.
func (d *documents) makeRoom(limit int, counted func(*fetch) bool) {
	count, hosts := 0, make(map[string]int)
	for _, f := range d.fetches {
		if counted(f) {
			count++
			hosts[f.host]++
		}
	}
	if count < limit {
		return
	}
	var victim *fetch
	for _, f := range d.fetches {
		if counted(f) && (victim == nil || hosts[f.host] > hosts[victim.host]) {
			victim = f
		}
	}
	d.forget(victim)
	victim.end(errCrowded)
}

// leave says that a request gives up waiting for the fetch. It ends the fetch if no other request waits for it.
func (d *documents) leave(f *fetch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		d.forget(f)
		f.end(nil)
	}
}

// forget removes a fetch from d.fetches. The caller holds mu.
func (d *documents) forget(f *fetch) {
	d.fetches = slices.DeleteFunc(d.fetches, func(other *fetch) bool { return other == f })
}

func (d *documents) run(ctx context.Context, f *fetch, u *url.URL) {
	c, lasts, err := d.read(ctx, f.id)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(f)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errCrowded):
		f.err = &fault{"temporarily_unavailable", errCrowded.Error() + "; try again"}
	case err != nil:
		f.err = &fault{"invalid_client", fmt.Sprintf("reading the client document at %[1]s: %[2]s. If mcpx cannot "+
			"reach %[1]s, its operator sets \"documents\": false in auth.front: clients register then. Log out in the client before you "+
			"connect again (claude mcp logout NAME)", sanitize.Line(u.Host, 100), sanitize.Line(err.Error(), 200))}
	default:
		c.Host = u.Host
		f.client = c
		if lasts > 0 {
			d.kept.Put(f.id, &keptDocument{c, time.Now().Add(lasts)})
		}
	}
	f.end(nil)
	close(f.done)
}
