// Package savings counts the tokens that mcpx saves, and keeps the sums of each day in a folder that several processes share.
package savings

import (
	"maps"
	"slices"
)

// Figures are sums of estimated tokens, in the encoding o200k. Definitions, Compression and Cut are the three kinds of savings. Each of the
// three is negative if mcpx has cost more tokens of this kind than it has saved.
type Figures struct {
	// Calls is the number of calls that servers have answered, and Sessions how many sessions have listed tools.
	Calls    int64 `json:"calls"`
	Sessions int64 `json:"sessions,omitempty"`
	// Received is the size of the results that servers sent. Sent is the size of what clients got: the shortened results, and the
	// parts that they read later by a handle, which is the name of a stored result.
	Received int64 `json:"tokens_received"`
	Sent     int64 `json:"tokens_sent"`
	// Definitions is how many tokens of tool definitions mcpx has kept out of requests to models: all - own - looked.
	//   - all is the size of the definitions of the servers' tools.
	//   - own is the size of the definitions of mcpx's own tools.
	//   - looked is the size of all answers of mcpx's tool inspect, which contain definitions.
	// all and own count once for each session, because mcpx does not know how many requests to a model contain the definitions.
	// Some clients search for tools themselves, and show the model little about them before a search. For these clients, all and
	// own are the size of what the client shows before a search, and looked is 0.
	Definitions int64 `json:"definitions"`
	// Compression is how many tokens mcpx has saved by sending results in shorter forms, such as TOON.
	Compression int64 `json:"compression"`
	// Cut is the size of the parts of long results that mcpx did not send, minus the size of those parts that clients later read by a
	// handle (the name of a stored result).
	Cut int64 `json:"cut"`
	// LeftOut is what callers left out of results, with select, grep and programs. It belongs to none of the three kinds of
	// savings.
	LeftOut int64 `json:"left_out,omitempty"`
}

// Add adds other to f.
func (f *Figures) Add(other Figures) {
	f.Calls += other.Calls
	f.Sessions += other.Sessions
	f.Received += other.Received
	f.Sent += other.Sent
	f.Definitions += other.Definitions
	f.Compression += other.Compression
	f.Cut += other.Cut
	f.LeftOut += other.LeftOut
}

// Key says what Figures are about. If Tool is empty, the Figures are about the definitions of the server's tools.
type Key struct{ Server, Tool, Client string }

// tool returns the name that tells the tool apart from the tools of other servers.
func (k Key) tool() string {
	switch {
	case k == otherKey:
		return Other
	case k.Tool == "":
		return k.Server + " (definitions)"
	}
	return k.Server + "." + k.Tool
}

// Other is the name for the sum of the figures that get no name of their own, because there are too many names.
const Other = "(other)"

var otherKey = Key{Other, Other, Other}

// Day has the sums of one day by server, by tool and by client. Each of the three maps contains all figures of the day.
type Day struct {
	Date    string             `json:"date"`
	Servers map[string]Figures `json:"servers"`
	Tools   map[string]Figures `json:"tools"`
	Clients map[string]Figures `json:"clients"`
}

// These are the largest numbers of names in a day. The file of a day with so many names has about 100 KB; most files have 2 KB.
const (
	maxServers = 150
	maxTools   = 500
	maxClients = 50
)

func (d *Day) add(k Key, f Figures) {
	addTo(&d.Servers, k.Server, f, maxServers)
	addTo(&d.Tools, k.tool(), f, maxTools)
	addTo(&d.Clients, k.Client, f, maxClients)
}

// merge adds another day to d.
func (d *Day) merge(other Day) {
	for _, part := range []struct {
		into *map[string]Figures
		from map[string]Figures
		most int
	}{{&d.Servers, other.Servers, maxServers}, {&d.Tools, other.Tools, maxTools}, {&d.Clients, other.Clients, maxClients}} {
		for _, name := range slices.Sorted(maps.Keys(part.from)) {
			addTo(part.into, name, part.from[name], part.most)
		}
	}
}

// addTo adds f to the sum of a name. If the name is new, and sums already has limit names, it adds f to the sum of Other instead.
func addTo(sums *map[string]Figures, name string, f Figures, limit int) {
	if *sums == nil {
		*sums = make(map[string]Figures)
	}
	sum, known := (*sums)[name]
	if !known && len(*sums) >= limit {
		name = Other
		sum = (*sums)[name]
	}
	sum.Add(f)
	(*sums)[name] = sum
}

// total returns the sum of the day.
func (d *Day) total() (sum Figures) {
	for _, f := range d.Servers {
		sum.Add(f)
	}
	return sum
}
