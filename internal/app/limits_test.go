package app

import (
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/desk/config"
)

func limitsIn(t *testing.T, file string) conf.Limits {
	t.Helper()
	cfg, err := config.Parse("c.json", []byte(file), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return limitsOf(cfg)
}

// TestLimits_Defaults checks the default limits. They should keep one principal from blocking others, without
// restricting a single user.
func TestLimits_Defaults(t *testing.T) {
	got := limitsIn(t, `{"mcpServers": {}}`)
	queue := semaphore.Queue{Calls: 1000, Wait: 30 * time.Second}
	want := conf.Limits{
		All:       conf.Quota{Sessions: 10_000, Queue: semaphore.Queue{Calls: 1000}},
		Server:    conf.Quota{Sessions: 1000, Queue: semaphore.Queue{Calls: 1000}},
		Principal: conf.Quota{Sessions: 1000, ConcurrentCalls: 256, Queue: queue, Pace: 5000, BodyBytes: 256 << 20, BodyPace: 4 << 20, AnswerBytes: 256 << 20},
		Anybody:   conf.Quota{Queue: queue, BodyBytes: 256 << 20, AnswerBytes: 256 << 20}, AddressRequests: 100, Connections: 20_000, AddressConnections: 1000,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestLimits_Config: the limits in the file apply to all principals, and 0 turns off a default. Unless the file says otherwise,
// the limit of requests per second is computed from the calls per minute.
func TestLimits_Config(t *testing.T) {
	got := limitsIn(t, `{"rate_limit_per_minute": 600, "limits": {"sessions": 0, "queue": 0, "principal": {"concurrent_calls": 0, "sessions": 7}}, "mcpServers": {}}`)
	if got.All.Sessions != 0 || got.All.Queue.Calls >= 0 {
		t.Errorf("in all: %+v", got.All)
	}
	for who, q := range map[string]conf.Quota{"principal": got.Principal, "anybody": got.Anybody} {
		if q.CallsPerMinute != 600 || q.ConcurrentCalls != 0 || q.Sessions != 7 || q.RequestsPerSecond != 100 {
			t.Errorf("%s: %+v", who, q)
		}
	}
	if slow := limitsIn(t, `{"limits": {"principal": {"calls_per_minute": 5}}, "mcpServers": {}}`); slow.Principal.RequestsPerSecond != 10 {
		t.Errorf("5 calls a minute: a flood begins at %d requests a second", slow.Principal.RequestsPerSecond)
	}
	if own := limitsIn(t, `{"limits": {"principal": {"calls_per_minute": 5, "requests_per_second": 0}}, "mcpServers": {}}`); own.Principal.RequestsPerSecond != 0 {
		t.Error("a 0 does not lift the limit of requests")
	}
	// Even with a small limit, 16 screenshots can be answered at once.
	small := limitsIn(t, `{"max_message_bytes": 1048576, "mcpServers": {}}`)
	for _, q := range []conf.Quota{small.Principal, small.Anybody} {
		if q.BodyBytes != 4<<20 || q.AnswerBytes != 64<<20 {
			t.Errorf("with messages of 1 MiB: bodies of %d bytes, answers of %d", q.BodyBytes, q.AnswerBytes)
		}
	}
}
