package config

import (
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
)

const (
	// Without the key requests_per_second, a principal may send floodFactor times calls_per_minute HTTP requests per minute, but at
	// least minFloodRequests requests per second. If calls_per_minute is 0, requests are not limited.
	floodFactor      = 10
	minFloodRequests = 10
)

// defaultLimits returns limits that well-behaved clients do not reach, and that keep one principal from using up all resources.
// Calls per minute are not limited by default: mcpx cannot know how many calls a user needs, or how many a server can handle.
// Clients without credentials share the quota Anybody. By default it limits only how many calls may wait, and for how long.
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

func (l *loader) limits(n *node) {
	if (n.kind == objectKind || !n.off()) && l.expectKind(objectKind, n) {
		l.members(n, l.limitsObject(), nil)
	}
}

func (l *loader) limitsObject() object {
	o := &l.cfg.Limits
	return object{name: "limits", strict: true, keys: append(l.quota(&o.All, &l.cfg.MaxConcurrency),
		key{"connections", l.count(&o.Connections, 0).takes(atStart), "most open connections of clients with a valid credential; further ones wait, and the last tenth is only for principals that have few. The others may be a quarter of it more"},
		key{"server", l.nested(func() object {
			return object{name: "limitsOfServer", strict: true, keys: l.quota(&o.Server, &o.ServerCalls)}
		}), "the same for each server"},
		key{"principal", value{describe: func() object { return l.principalLimits(&o.Principal) }, read: l.ofPrincipals}, "the same for each principal"},
		key{"address", l.nested(func() object {
			return object{name: "limitsOfAddress", strict: true, keys: []key{
				{"requests_per_second", l.count(&o.AddressRequests, 0), "requests from one address (IPv6: /64), not counting those of known principals"},
				{"connections", l.count(&o.AddressConnections, 0), "open connections from one address (this machine is one), not counting those of clients with a valid credential; over it, the one that was silent for longest ends"},
			}}
		}), "limits for each address"},
	)}
}

// ofPrincipals reads the key limits.principal twice, because its values apply both to the quota of a principal and to the quota
// Anybody, which clients without credentials share.
func (l *loader) ofPrincipals(n *node) {
	if !l.expectKind(objectKind, n) {
		return
	}
	l.members(n, l.principalLimits(&l.cfg.Limits.Principal), nil)
	faults := len(l.faults)
	l.members(n, l.principalLimits(&l.cfg.Limits.Anybody), nil)
	l.faults = l.faults[:faults] // the second reading finds the same faults again
}

func (l *loader) principalLimits(q *conf.Quota) object {
	flood := l.count(&q.RequestsPerSecond, 0).andThen(func(*node) { l.floodSaid = true })
	flood.derived = true
	return object{name: "limitsOfPrincipal", strict: true, keys: append(l.quota(q, &q.ConcurrentCalls),
		key{"requests_per_second", flood, "HTTP requests of any kind, and each further message of a batch; a burst of 100 and of two seconds' worth is allowed, more is a flood. The default is ten times `calls_per_minute`, at least 10 a second; without that key there is no limit"},
	)}
}

// quota returns the keys that all quotas have in common. The value of concurrent_calls goes to *concurrent.
func (l *loader) quota(q *conf.Quota, concurrent *int) []key {
	queue := l.count(&q.Queue.Calls, 0).andThen(func(*node) {
		if q.Queue.Calls == 0 { // 0 means no queue in the file, but no limit in a semaphore.Queue
			q.Queue.Calls = -1
		}
	})
	return []key{
		{"calls_per_minute", l.count(&q.CallsPerMinute, 0), "calls, which become free evenly over the minute"},
		{"burst", l.count(&q.Burst, 1), "most calls at once; the default is `calls_per_minute`"},
		{"result_bytes_per_minute", l.count(&q.ResultBytesPerMinute, 0), "bytes of results from servers. One result may exceed it; later calls are refused until that is made up for"},
		{"concurrent_calls", l.count(concurrent, 0), "calls at the same time; for all together, and for servers, it is the same as `max_concurrency`"},
		{"queue", queue, "most calls that wait for one of these; 0 is none"},
		{"queue_wait", l.wait(&q.Queue.Wait), "how long each waits; 0 is no limit"},
		{"sessions", l.count(&q.Sessions, 0), "most open sessions; for a server, its sessions for single clients"},
	}
}

// oldRateLimit reads the key rate_limit_per_minute of older versions of mcpx: calls per minute, for each caller.
func (l *loader) oldRateLimit(n *node) {
	if n.off() {
		return
	}
	calls := 0
	l.count(&calls, 0).read(n)
	l.cfg.Limits.Principal.CallsPerMinute, l.cfg.Limits.Anybody.CallsPerMinute = calls, calls
}

// finishLimits sets requests_per_second to its default, which depends on calls_per_minute. It does nothing if the file sets
// requests_per_second itself, or if calls per minute are not limited.
func (l *loader) finishLimits() {
	for _, q := range []*conf.Quota{&l.cfg.Limits.Principal, &l.cfg.Limits.Anybody} {
		if q.CallsPerMinute > 0 && !l.floodSaid {
			q.RequestsPerSecond = max(minFloodRequests, floodFactor*q.CallsPerMinute/60)
		}
	}
}
