package app

import (
	"time"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/limits"
)

// The default limits. Well-behaved clients do not meet them, and they keep one principal from
// taking all that there is. Calls a minute have no default, as mcpx cannot know how many a user
// needs and a server can take.
const (
	mostSessions      = 10_000 // in all
	mostSessionsOfOne = 1_000  // of a principal, or of a server with single clients
	mostConcurrent    = 256    // calls of a principal
	mostQueued        = 1_000
	longestQueued     = 30 * time.Second // for a place among the calls of a principal
	paceOfOne         = 5_000            // requests a second of a principal go on at once
	bodyPaceOfOne     = 4 << 20          // bytes of large bodies a second of a principal
	bodies            = 4                // messages of max_message_bytes that a principal sends at once

	mostConnections          = 20_000
	mostConnectionsOfAddress = 1_000 // without a principal
	mostOfAddress            = 100   // requests a second without a principal
	floodFactor              = 10    // a flood is so many times the calls a minute
	leastFloodRequests       = 10    // a second
)

// limitsOf makes the limits of a config. Without auth all requests count for one principal,
// which has only the limits that the config names.
func limitsOf(cfg *config.Config) limits.Options {
	l := &cfg.Limits
	options := limits.Options{
		All:             quota(l.All, config.Quota{Sessions: mostSessions}),
		Server:          quota(l.Server, config.Quota{Sessions: mostSessionsOfOne}),
		Anybody:         quota(l.Principal, config.Quota{QueueWait: longestQueued}),
		AddressRequests: or(l.AddressRequests, mostOfAddress),

		Connections:        or(l.Connections, mostConnections),
		AddressConnections: or(l.AddressConnections, mostConnectionsOfAddress),

		Principal: quota(l.Principal, config.Quota{
			Sessions: mostSessionsOfOne, ConcurrentCalls: mostConcurrent, QueueWait: longestQueued,
		}),
	}
	options.Principal.BodyBytes = bodies * cfg.MaxMessageBytes
	options.Anybody.BodyBytes = options.Principal.BodyBytes
	options.Principal.Pace, options.Principal.BodyPace = paceOfOne, bodyPaceOfOne
	return options
}

// quota is that of a config, with defaults for what the config does not say.
func quota(q, defaults config.Quota) limits.Quota {
	out := limits.Quota{
		CallsPerMinute:       or(q.CallsPerMinute, defaults.CallsPerMinute),
		Burst:                or(q.Burst, defaults.Burst),
		ResultBytesPerMinute: or(q.ResultBytesPerMinute, defaults.ResultBytesPerMinute),
		Sessions:             or(q.Sessions, defaults.Sessions),
		ConcurrentCalls:      or(q.ConcurrentCalls, defaults.ConcurrentCalls),
		Queue:                queue(q, defaults.QueueWait),
		RequestsPerSecond:    or(q.RequestsPerSecond, defaults.RequestsPerSecond),
	}
	if q.RequestsPerSecond == config.Unset && out.CallsPerMinute > 0 {
		out.RequestsPerSecond = max(leastFloodRequests, floodFactor*out.CallsPerMinute/60)
	}
	return out
}

// queue makes the bounds of waiting calls from a config, where 0 means that none may wait.
func queue(q config.Quota, wait time.Duration) semaphore.Queue {
	out := semaphore.Queue{Calls: or(q.Queue, mostQueued), Wait: or(q.QueueWait, wait)}
	if out.Calls == 0 {
		out.Calls = -1
	}
	return out
}

// or is a value of a config, or the default where the config does not say it.
func or[T ~int | ~int64](value, otherwise T) T {
	if value == config.Unset {
		return otherwise
	}
	return value
}
