package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// Every call is heard of once when it ends, however it does; the account has those
// that an upstream answered.
func TestObserve(t *testing.T) {
	mcptest.NoLeaks(t)
	long := strings.Repeat("A line of some words.\n", 200)
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo"},{"name":"fail"},{"name":"slow"},{"name":"crash"},{"name":"long"},{"name":"table"}]`), Results: map[string]json.RawMessage{
		"long":  json.RawMessage(`{"content":[` + string(wire.TextBlock(long)) + `]}`),
		"table": json.RawMessage(`{"content":[` + string(wire.TextBlock(mcptest.TableText(20))) + `]}`),
	}}
	var lines bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e := executing(t, Options{Observers: []func(Record){LogCalls(logger, slog.LevelDebug)}, ResultTokens: 200, TOON: true}, nil, piped(t, "one", fake))
	said := regexp.MustCompile(`msg=call server=(\S+) tool=(\S+) outcome=(\S+) duration=\S+ upstream=\S+ tokens_received=(\d+) tokens_sent=(\d+)`)
	for _, tt := range []struct {
		server, tool, outcome string
		answered              bool
		shape                 string // of the tokens
	}{
		{"one", "echo", "RESULT", true, "same"},
		{"one", "fail", "TOOL_ERROR", true, "same"},
		{"one", "long", "RESULT", true, "cut"},
		{"one", "table", "RESULT", true, "less"},
		{"one", "nobody", "TOOL_NOT_FOUND", false, "none"},
		{"mcpx", "read_result", "VALIDATION_ERROR", false, "none"},
		{"one", "crash", "CONNECTION_LOST", false, "none"},
	} {
		lines.Reset()
		before := e.Accounts()["one"]
		result := exec(t, e, Request{Server: tt.server, Tool: tt.tool, Arguments: json.RawMessage(`{"text":"some words","message":"no luck"}`)})
		after := e.Accounts()["one"]
		got := said.FindAllStringSubmatch(lines.String(), -1)
		if len(got) != 1 || !slices.Equal(got[0][1:4], []string{tt.server, tt.tool, tt.outcome}) {
			t.Errorf("%s.%s: %s", tt.server, tt.tool, lines.String())
			continue
		}
		if (after.Calls > before.Calls) != tt.answered || tt.answered && (after.Received-before.Received != int64(result.received) || after.Sent-before.Sent != int64(result.sent)) {
			t.Errorf("%s: account %+v, before %+v", tt.tool, after, before)
		}
		sent := 0
		for _, raw := range result.Content {
			sent += roughly(wire.ReadBlock(raw).Text)
		}
		if difference := sent - result.sent; difference > 2 || difference < -2 {
			t.Errorf("%s: %d tokens sent, counted %d", tt.tool, sent, result.sent)
		}
		if ok := map[string]bool{
			"same": result.received == result.sent && result.sent > 0, "cut": result.received > 500 && result.sent <= 200,
			"less": result.sent < result.received && result.sent > 0, "none": result.received == 0,
		}[tt.shape]; !ok {
			t.Errorf("%s: %d tokens received, %d sent", tt.tool, result.received, result.sent)
		}
	}

	lines.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Exec(ctx, Request{Server: "one", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}); err == nil || !strings.Contains(lines.String(), "outcome=CANCELLED") {
		t.Errorf("%v, %s", err, lines.String())
	}
}

// A record has the sizes, the trace, and where the time went; the line of the log has
// neither arguments nor results.
func TestObserve_record(t *testing.T) {
	mcptest.NoLeaks(t)
	var records []Record
	var lines bytes.Buffer
	logged := LogCalls(slog.New(slog.NewTextHandler(&lines, nil)), slog.LevelInfo)
	observe := func(r Record) {
		records = append(records, r)
		logged(r)
	}
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"look","annotations":{"readOnlyHint":true}}]`), Results: map[string]json.RawMessage{
		"look": json.RawMessage(`{"content":[` + string(wire.TextBlock("canary in a result")) + `]}`),
	}}
	e := executing(t, Options{Observers: []func(Record){observe}}, nil, piped(t, "one", fake))
	const trace = "0af7651916cd43dd8448eb211c80319c"
	result := exec(t, e, Request{From: request.From{Client: &caller.Client{Name: "an agent\nlevel=ERROR", Principal: &caller.Principal{ID: "token:ann"}}, Meta: []request.Meta{{Name: "traceparent", Value: json.RawMessage(`"00-` + trace + `-b7ad6b7169203331-01"`)}}}, Server: "one", Tool: "look", Arguments: json.RawMessage(`{"text":"canary in an argument"}`)})
	exec(t, e, Request{Server: "one", Tool: "ignore\nall"})
	if len(records) != 2 {
		t.Fatalf("%+v", records)
	}
	r := records[0]
	if r.Principal != "token:ann" || r.Client != "an agent\nlevel=ERROR" || !r.Known || !r.ReadOnly || r.Trace != trace ||
		r.ArgumentBytes != 32 || r.ReceivedBytes < 40 || r.SentBytes != result.size() || r.Upstream <= 0 || r.Duration < r.Upstream || r.Began.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := records[1]; r.Known || r.Upstream != 0 || r.Outcome != CodeToolNotFound {
		t.Errorf("%+v", r)
	}
	if text := lines.String(); strings.Contains(text, "canary") || strings.Count(text, "\n") != 2 || !strings.Contains(text, "principal=token:ann") ||
		!strings.Contains(text, `client="an agent level=ERROR"`) || !strings.Contains(text, "trace="+trace) || !strings.Contains(text, `tool="ignore all"`) {
		t.Error(text)
	}
}

func TestTraceparent(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, sampled := range map[string]bool{
		"00-" + trace + "-" + parent + "-01":      true,
		"00-" + trace + "-" + parent + "-02":      false,
		"01-" + trace + "-" + parent + "-03-more": true,
	} {
		gotTrace, gotParent, got := parseTraceparent(wire.Encode(text))
		if gotTrace != trace || gotParent != parent || got != sampled {
			t.Errorf("%s: %s %s %v", text, gotTrace, gotParent, got)
		}
	}
	for _, text := range []string{
		`""`, `7`, `{}`, `"00-` + trace + `-` + parent + `"`, `"00-` + trace + `-` + parent + `-0g"`, `"00-` + strings.ToUpper(trace) + `-` + parent + `-01"`,
		`"00-00000000000000000000000000000000-` + parent + `-01"`, `"00-` + trace + `-0000000000000000-01"`, `"00-` + trace + parent + `--01"`,
	} {
		if trace, parent, sampled := parseTraceparent(json.RawMessage(text)); trace != "" || parent != "" || sampled {
			t.Errorf("%s: %s %s %v", text, trace, parent, sampled)
		}
	}
}

// With tracing the upstream gets the span of its request, below that of the call, below the
// client's; what is not sampled, or no trace, goes through as it is.
func TestTracing(t *testing.T) {
	mcptest.NoLeaks(t)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, tt := range []struct {
		name    string
		tracing *Tracing
		meta    string // of the client
		spans   bool
	}{
		{"off", nil, "00-" + trace + "-" + parent + "-01", false},
		{"sampled", &Tracing{}, "00-" + trace + "-" + parent + "-01", true},
		{"not sampled", &Tracing{Share: 1}, "00-" + trace + "-" + parent + "-00", false},
		{"no trace", &Tracing{}, "", false},
		{"begins here", &Tracing{Share: 1}, "", true},
		{"odd", &Tracing{Share: 1}, "00-odd", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var records []Record
			fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"look"}]`)}.HTTP(t)
			e := executing(t, Options{Tracing: tt.tracing, Observers: []func(Record){func(r Record) { records = append(records, r) }}}, nil,
				registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: "one", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}})
			meta := []request.Meta{{Name: "before", Value: json.RawMessage("1")}}
			if tt.meta != "" {
				meta = append(meta, request.Meta{Name: "traceparent", Value: wire.Encode(tt.meta)})
			}
			exec(t, e, Request{From: request.From{Meta: slices.Clip(meta)}, Server: "one", Tool: "look"})
			message := string(fake.Log().Method("tools/call")[0].Message)
			if len(records) != 1 || (records[0].Spans != nil) != tt.spans || !strings.Contains(message, `"before":1`) || strings.Count(message, "traceparent") > 1 {
				t.Fatalf("%+v, sent %s", records, message)
			}
			record := records[0]
			want := tt.meta
			if tt.spans {
				want = "00-" + record.Trace + "-" + record.Spans.Upstream + "-01"
				if record.Asked.Before(record.Began) || record.Spans.Call == record.Spans.Upstream || (record.Spans.Parent == parent) != (tt.name == "sampled") {
					t.Errorf("%+v, %+v", record, record.Spans)
				}
			}
			if strings.HasPrefix(tt.meta, "00-0a") && record.Trace != trace {
				t.Errorf("%+v", record)
			}
			if got := strings.Contains(message, `"traceparent":"`+want+`"`); got != (want != "") || want == "" && strings.Contains(message, "traceparent") {
				t.Errorf("sent %s, want %s", message, want)
			}
			if len(meta) == 2 && string(meta[1].Value.(json.RawMessage)) != `"`+tt.meta+`"` {
				t.Error("the client's own _meta was changed")
			}
		})
	}
}

// What may wait until the answer is written does so, but of a call that may go on after it.
func TestObserve_afterwards(t *testing.T) {
	var records []Record
	e := executing(t, Options{Observers: []func(Record){func(r Record) { records = append(records, r) }}}, nil)
	var after []func()
	r := Request{Server: "none", Tool: "x", Afterwards: func(do func()) { after = append(after, do) }}
	exec(t, e, r)
	if len(records) != 0 || len(after) != 1 {
		t.Fatalf("%d records, %d for later", len(records), len(after))
	}
	after[0]()
	if len(records) != 1 || records[0].Outcome != CodeServerNotFound {
		t.Errorf("%+v", records)
	}
	r.Form.Wait = time.Minute
	exec(t, e, r)
	if len(records) != 2 || len(after) != 1 {
		t.Errorf("%d records, %d for later", len(records), len(after))
	}
}
