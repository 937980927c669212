package config

import (
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
)

const (
	floodFactor        = 10 // a flood is so many times the calls a minute
	leastFloodRequests = 10 // a second
)

// defaultLimits are limits that well-behaved clients do not meet, and that keep one principal from
// taking all that there is. Calls a minute have no default, as mcpx cannot know how many a user
// needs and a server can take. Without auth all requests are of one principal, anybody, which has
// only the limits that the file names.
func defaultLimits() conf.Limits {
	queue := semaphore.Queue{Calls: 1000}
	principals := semaphore.Queue{Calls: 1000, Wait: 30 * time.Second}
	return conf.Limits{
		All:         conf.Quota{Sessions: 10_000, Queue: queue},
		Server:      conf.Quota{Sessions: 1_000, Queue: queue},
		Principal:   conf.Quota{Sessions: 1_000, ConcurrentCalls: 256, Queue: principals},
		Anybody:     conf.Quota{Queue: principals},
		Connections: 20_000, AddressConnections: 1_000, AddressRequests: 100,
	}
}

// limits reads how much callers may use.
func (l *loader) limits(path string, n *node) {
	if (n.kind == objectKind || !n.off()) && l.is(objectKind, path, n) {
		l.members(path, n, l.limitsObject(), nil)
	}
}

// limitsObject has the limits of all together, and of each principal, server and address.
func (l *loader) limitsObject() object {
	o := &l.cfg.Limits
	return object{name: "limits", strict: true, keys: append(l.quota(&o.All, &l.cfg.MaxConcurrency),
		key{"connections", l.count(&o.Connections, 0).takes(atStart), "open at once; new ones wait beyond that"},
		key{"server", l.nested(func() object {
			return object{name: "limitsOfServer", strict: true, keys: l.quota(&o.Server, &l.everyServer.MaxConcurrency)}
		}), "the same of each server"},
		key{"principal", value{of: func() object { return l.principalLimits(&o.Principal) }, read: l.ofPrincipals}, "the same of each principal"},
		key{"address", l.nested(func() object {
			return object{name: "limitsOfAddress", strict: true, keys: []key{
				{"requests_per_second", l.count(&o.AddressRequests, 0), "requests of one address (IPv6: /64), as long as nobody is known behind it"},
				{"connections", l.count(&o.AddressConnections, 0), "open connections of one address over which nobody is known"},
			}}
		}), "of each address"},
	)}
}

// ofPrincipals reads the limits of a principal, for anybody too.
func (l *loader) ofPrincipals(path string, n *node) {
	if !l.is(objectKind, path, n) {
		return
	}
	l.members(path, n, l.principalLimits(&l.cfg.Limits.Principal), nil)
	faults := len(l.faults)
	l.members(path, n, l.principalLimits(&l.cfg.Limits.Anybody), nil)
	l.faults = l.faults[:faults] // the same again
}

func (l *loader) principalLimits(q *conf.Quota) object {
	flood := l.count(&q.RequestsPerSecond, 0).then(func(string, *node) { l.floodSaid = true })
	flood.derived = true
	return object{name: "limitsOfPrincipal", strict: true, keys: append(l.quota(q, &q.ConcurrentCalls),
		key{"requests_per_second", flood, "requests of any kind, a hundred and two seconds of them at once; more is a flood. Without it ten times its calls, at least 10, and no limit without `calls_per_minute`"},
	)}
}

// quota are the keys that all quotas have.
func (l *loader) quota(q *conf.Quota, concurrent *int) []key {
	queue := l.count(&q.Queue.Calls, 0).then(func(string, *node) {
		if q.Queue.Calls == 0 { // 0 is none in the file, and any number in a queue
			q.Queue.Calls = -1
		}
	})
	return []key{
		{"calls_per_minute", l.count(&q.CallsPerMinute, 0), "calls come back evenly over the minute"},
		{"burst", l.count(&q.Burst, 1), "so many calls at once; without it the calls of a minute"},
		{"result_bytes_per_minute", l.count(&q.ResultBytesPerMinute, 0), "bytes that servers sent. One result may go beyond, and the next calls wait for that"},
		{"concurrent_calls", l.count(concurrent, 0), "calls at once; of all and of servers it is `max_concurrency`"},
		{"queue", queue, "calls that wait for a place among those; 0 is none"},
		{"queue_wait", l.wait(&q.Queue.Wait), "how long each waits; 0 as long as it may take"},
		{"sessions", l.count(&q.Sessions, 0), "open at once; of a server, those for single clients"},
	}
}

// oldRateLimit reads the key of the older mcpx: the calls a minute of each caller.
func (l *loader) oldRateLimit(path string, n *node) {
	if n.off() {
		return
	}
	calls := 0
	l.count(&calls, 0).read(path, n)
	l.cfg.Limits.Principal.CallsPerMinute, l.cfg.Limits.Anybody.CallsPerMinute = calls, calls
}

// finishLimits says when the requests of a principal are a flood, where the file does not.
func (l *loader) finishLimits() {
	for _, q := range []*conf.Quota{&l.cfg.Limits.Principal, &l.cfg.Limits.Anybody} {
		if q.CallsPerMinute > 0 && !l.floodSaid {
			q.RequestsPerSecond = max(leastFloodRequests, floodFactor*q.CallsPerMinute/60)
		}
	}
}
