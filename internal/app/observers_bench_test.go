//go:build unix

package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/request"
)

// BenchmarkObservers measures how much the metrics, the log record and the audit trail (two records for a call that is not
// read-only) add to a call: at most 6 µs without the chain of hashes. It writes to real files.
func BenchmarkObservers(b *testing.B) {
	for name, keys := range map[string]string{
		"default":     `"telemetry":{"metrics":true}`,
		"audit":       `"audit":{"file":"audit.jsonl"}`,
		"audit,read":  `"audit":{"file":"audit.jsonl"}`,
		"audit,chain": `"audit":{"file":"audit.jsonl","key":"a key of the benchmark"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.Setenv("XDG_CACHE_HOME", b.TempDir())
			path := filepath.Join(b.TempDir(), "config.json")
			cfg, err := config.Parse(path, []byte(`{"mcpServers":{},`+keys+`}`), config.Options{})
			if err != nil {
				b.Fatal(err)
			}
			lines, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer lines.Close()
			a, err := New(Options{Config: cfg, Profile: Hosted, Log: slog.New(slog.NewTextHandler(lines, nil))})
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close()
			end, err := a.OpenAudit()
			if err != nil {
				b.Fatal(err)
			}
			defer end()
			event := request.Event{
				Method: "tools/call", KnownMethod: true, Request: true, Attempted: true, Answered: true, Outcome: "RESULT",
				Who: request.Who{Principal: "token ann", Client: "claude-code"},
				Target: request.Target{
					Server: "shop", Tool: "search_items", KnownServer: true, Known: true, ReadOnly: strings.HasSuffix(name, "read"),
				},
				Durations: request.Durations{Began: time.Now(), Duration: 12 * time.Millisecond, Upstream: 11 * time.Millisecond},
				Sizes:     request.Sizes{Received: 700, Sent: 500, ArgumentBytes: 80, ReceivedBytes: 3000, SentBytes: 2000},
			}
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				one := event
				a.journal.Attempt(&one)
				if err := a.auditor.began(&one); err != nil {
					b.Fatal(err)
				}
				a.journal.End(&one)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns the CPU time that the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
