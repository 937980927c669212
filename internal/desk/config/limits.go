package config

import "time"

// Limits say how much callers may use.
type Limits struct {
	// All is for everybody together, Principal for each principal, Server for each server.
	All, Principal, Server Quota
	// AddressRequests are the requests a second that one address may send without being
	// anybody; 0 = any number.
	AddressRequests int
	// Connections bounds those that are open, and AddressConnections those of one address
	// over which nobody is known; 0 = any number.
	Connections, AddressConnections int
}

// Quota is how much may be used. A 0 is no limit, and Unset what the file does not say.
type Quota struct {
	CallsPerMinute, Burst, ResultBytesPerMinute, Sessions int
	// ConcurrentCalls is of principals; for the others there is MaxConcurrency.
	ConcurrentCalls int
	// Queue is how many calls wait for a place among the concurrent ones, 0 = none, and
	// QueueWait how long each waits, 0 = as long as it may take.
	Queue     int
	QueueWait time.Duration
	// RequestsPerSecond is of principals.
	RequestsPerSecond int
}

// Unset is a number, or a duration, that the file does not give where 0 is one.
const Unset = -1

func unsetQuota() Quota {
	return Quota{
		CallsPerMinute: Unset, Burst: Unset, ResultBytesPerMinute: Unset, Sessions: Unset, ConcurrentCalls: Unset,
		Queue: Unset, QueueWait: Unset, RequestsPerSecond: Unset,
	}
}

func defaultLimits() Limits {
	return Limits{
		All: unsetQuota(), Principal: unsetQuota(), Server: unsetQuota(),
		AddressRequests: Unset, Connections: Unset, AddressConnections: Unset,
	}
}

// limits reads how much callers may use: the members of the object itself are for all
// together, those of principal and server for each of these. Its unknown keys are faults:
// each may be meant to keep something within bounds.
func (l *loader) limits(path string, n *node) {
	if n.kind != objectKind && n.off() || !l.is(objectKind, path, n) {
		return
	}
	o := &l.cfg.Limits
	all, server, principal := l.quota(&o.All), l.quota(&o.Server), l.quota(&o.Principal)
	all["concurrent_calls"] = l.count(&l.cfg.MaxConcurrency, 0)
	server["concurrent_calls"] = l.count(&l.everyServer.MaxConcurrency, 0)
	principal["concurrent_calls"] = l.count(&o.Principal.ConcurrentCalls, 0)
	principal["requests_per_second"] = l.count(&o.Principal.RequestsPerSecond, 0)
	all["server"] = l.quotaOf(server)
	all["principal"] = l.quotaOf(principal)
	all["connections"] = l.count(&o.Connections, 0)
	all["address"] = l.quotaOf(map[string]reader{
		"requests_per_second": l.count(&o.AddressRequests, 0),
		"connections":         l.count(&o.AddressConnections, 0),
	})
	l.only(path, n, all)
}

// quotaOf reads an object with these members.
func (l *loader) quotaOf(keys map[string]reader) reader {
	return func(path string, n *node) {
		if l.is(objectKind, path, n) {
			l.only(path, n, keys)
		}
	}
}

// quota are the members that all quotas have.
func (l *loader) quota(into *Quota) map[string]reader {
	return map[string]reader{
		"calls_per_minute":        l.count(&into.CallsPerMinute, 0),
		"burst":                   l.count(&into.Burst, 1),
		"result_bytes_per_minute": l.count(&into.ResultBytesPerMinute, 0),
		"sessions":                l.count(&into.Sessions, 0),
		"queue":                   l.count(&into.Queue, 0),
		"queue_wait":              l.wait(&into.QueueWait),
	}
}

// oldRateLimit reads the key of the older mcpx: the calls a minute of each caller.
func (l *loader) oldRateLimit(path string, n *node) {
	if !n.off() {
		l.count(&l.cfg.Limits.Principal.CallsPerMinute, 0)(path, n)
	}
}
