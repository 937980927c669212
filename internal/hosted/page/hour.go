package page

import (
	"maps"
	"slices"
	"sync"
	"time"

	"mcpx/internal/request"
	"mcpx/internal/results"
)

// minutes is how many minutes the charts of the page show.
const minutes = 60

type minute struct {
	at                            int64 // minutes since 1970
	calls, errors                 int
	definitions, compression, cut int // tokens saved
}

// series has the counts of the last minutes. It is a ring, whose index is the minute modulo 60.
type series [minutes]minute

// counts returns the counts of the minute at, in minutes since 1970. If the ring still has an old minute there, it is replaced.
func (s *series) counts(at int64) *minute {
	m := &s[at%minutes]
	if m.at != at {
		*m = minute{at: at}
	}
	return m
}

// add counts a call in the minute at.
func (s *series) add(at int64, r *request.Event) {
	m := s.counts(at)
	m.calls++
	if r.Failed() {
		m.errors++
	}
	if r.Answered {
		m.compression += r.Compression()
		m.cut += r.Cut
	}
}

// since reports whether something was counted in a minute after at.
func (s *series) since(at int64) bool {
	return slices.ContainsFunc(s[:], func(m minute) bool { return m.at > at })
}

// plots are the values that the charts of the page show. Each list has one value for each minute, with the oldest minute first. The
// values are numbers of calls or of saved tokens. A number of saved tokens may be negative.
type plots struct {
	Calls       []int `json:"calls"`
	Errors      []int `json:"errors"`
	Compression []int `json:"compression"`
	Definitions []int `json:"definitions,omitempty"` // of all servers together
	Cut         []int `json:"cut,omitempty"`         // of all servers together
}

// plots returns the counts of the hour that ends with the minute now. used is false if nothing was counted in that hour.
func (s *series) plots(now int64) (p plots, used bool) {
	for _, list := range []*[]int{&p.Calls, &p.Errors, &p.Definitions, &p.Compression, &p.Cut} {
		*list = make([]int, minutes)
	}
	for i := range minutes {
		at := now - minutes + 1 + int64(i)
		if m := s[at%minutes]; m.at == at {
			p.Calls[i], p.Errors[i] = m.calls, m.errors
			p.Definitions[i], p.Compression[i], p.Cut[i] = m.definitions, m.compression, m.cut
			used = true
		}
	}
	return p, used
}

// Hour counts the calls of the last hour and the tokens that mcpx saved, in all and per server. The zero value is ready. It may be
// used by several goroutines at the same time.
type Hour struct {
	mu      sync.Mutex
	all     series
	servers map[string]*series
}

// Add counts the tokens that a message has saved and, if the message is a call, the call. A call to an unknown server is counted
// only in the total, because callers can make up any number of server names. A call that was cancelled before it was sent to its
// server is not counted: if a call needs consent, the page cancels it, asks the viewer, and then makes the call again.
func (h *Hour) Add(r *request.Event) {
	h.addSavings(r)
	if !r.Attempted || !r.IsCall() || r.Cancelled() && r.Upstream == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := time.Now().Unix() / 60
	h.all.add(at, r)
	if !r.Known && (r.Outcome != results.CodeToolNotFound || !r.KnownServer) {
		return
	}
	one := h.servers[r.Server]
	if one == nil {
		if h.servers == nil {
			h.servers = make(map[string]*series)
		}
		// Servers that dial in choose their names, so there may be many. The method last forgets servers without a call in the last
		// hour, but it is called only while somebody looks at the page. So Add must forget them, too.
		maps.DeleteFunc(h.servers, func(_ string, s *series) bool { return !s.since(at - minutes) })
		one = &series{}
		h.servers[r.Server] = one
	}
	one.add(at, r)
}

// addSavings counts the tokens that are saved by other means than the results of calls. It adds the tokens of definitions of tools
// that clients did not get. It subtracts the tokens of parts that were cut from results and that clients have read later.
func (h *Hour) addSavings(r *request.Event) {
	if r.Definitions == nil && r.ReadOn == nil {
		return
	}
	var saved []request.Saving
	if r.Definitions != nil {
		saved = r.Definitions()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := time.Now().Unix() / 60
	for _, one := range saved {
		h.all.counts(at).definitions += one.Tokens
	}
	if r.ReadOn != nil {
		h.all.counts(at).cut -= r.Sent
	}
}

// lastHour has the counts of the last hour in the form in which the page gets them.
type lastHour struct {
	plots
	Servers map[string]plots `json:"servers"`
}

// last returns the counts of the hour that ends now. It forgets servers for which nothing was counted in this hour.
func (h *Hour) last(now time.Time) lastHour {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := now.Unix() / 60
	all, _ := h.all.plots(at)
	out := lastHour{all, make(map[string]plots)}
	for name, s := range h.servers {
		if p, used := s.plots(at); used {
			p.Definitions, p.Cut = nil, nil
			out.Servers[name] = p
		} else {
			delete(h.servers, name)
		}
	}
	return out
}
