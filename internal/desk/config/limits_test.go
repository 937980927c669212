package config

import (
	"fmt"
	"testing"
	"time"

	"mcpx/internal/base/conf"
)

func TestLimits(t *testing.T) {
	c, err := Parse("c.json", []byte(`{
		"limits": {
			"// note": 1, "calls_per_minute": 600, "concurrent_calls": 40, "sessions": 0, "queue": 0, "queue_wait": "2s",
			"principal": {"calls_per_minute": 60, "burst": 5, "concurrent_calls": 3, "result_bytes_per_minute": 1000000, "requests_per_second": 7},
			"server": {"concurrent_calls": 2, "sessions": 9},
			"connections": 70, "address": {"requests_per_second": 50, "connections": 8},
		},
		"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "max_concurrency": 0}},
	}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := conf.Limits{All: defaultLimits().All, Principal: defaultLimits().Principal, Anybody: defaultLimits().Anybody, Server: defaultLimits().Server,
		ServerCalls: 2, AddressRequests: 50, Connections: 70, AddressConnections: 8}
	want.All.CallsPerMinute, want.All.Sessions, want.All.Queue.Calls, want.All.Queue.Wait = 600, 0, -1, 2*time.Second
	for _, p := range []*conf.Quota{&want.Principal, &want.Anybody} {
		p.CallsPerMinute, p.Burst, p.ConcurrentCalls, p.ResultBytesPerMinute, p.RequestsPerSecond = 60, 5, 3, 1_000_000, 7
	}
	want.Server.Sessions = 9
	if c.Limits != want {
		t.Errorf("got  %+v\nwant %+v", c.Limits, want)
	}
	if c.MaxConcurrency != 40 || c.Servers[0].MaxConcurrency != 2 || c.Servers[1].MaxConcurrency != 0 {
		t.Errorf("concurrent calls: %d in all, %d and %d of the servers", c.MaxConcurrency, c.Servers[0].MaxConcurrency, c.Servers[1].MaxConcurrency)
	}
}

func TestLimits_Old(t *testing.T) {
	for value, want := range map[string]int{"60": 60, "0": 0, "null": 0} {
		c, err := Parse("c.json", []byte(`{"rate_limit_per_minute": `+value+`, "mcpServers": {}}`), Options{})
		if err != nil || c.Limits.Principal.CallsPerMinute != want || c.Limits.Anybody.CallsPerMinute != want {
			t.Errorf("%s: %v, %+v", value, err, c)
		}
	}
}

func TestLimits_Faults(t *testing.T) {
	for text, want := range map[string]string{
		`5`:                                  "limits: must be an object, not a number",
		`{"calls_per_minute": -1}`:           "limits.calls_per_minute: must not be negative",
		`{"calls_per_minute": 1.5}`:          "limits.calls_per_minute: must be a whole number",
		`{"callsPerMinute": 5}`:              `limits.callsPerMinute: unknown key "callsPerMinute", did you mean "calls_per_minute"?`,
		`{"principal": 5}`:                   "limits.principal: must be an object, not a number",
		`{"principal": {"burst": 0}}`:        "limits.principal.burst: must be at least 1",
		`{"principal": {"server": {}}}`:      "limits.principal.server: unknown key",
		`{"server": {"queue_wait": "soon"}}`: `limits.server.queue_wait: must be a number of seconds or a string such as "1m30s"`,
		`{"address": {"sessions": 5}}`:       "limits.address.sessions: unknown key",
	} {
		_, err := Parse("c.json", []byte(`{"limits": `+text+`, "mcpServers": {}}`), Options{})
		if got := fmt.Sprint(err); got != "c.json: "+want {
			t.Errorf("%s\ngot  %s\nwant c.json: %s", text, got, want)
		}
	}
	for _, off := range []string{`null`, `0`, `false`, `{}`} {
		c, err := Parse("c.json", []byte(`{"limits": `+off+`, "mcpServers": {}}`), Options{})
		if err != nil || c.Limits != defaultLimits() {
			t.Errorf("%s: %v, %+v", off, err, c)
		}
	}
}
