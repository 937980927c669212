package telemetry

import (
	"bytes"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"mcpx/internal/request"
)

// A sampled call is two spans with the ids that were given out, below the client's.
func TestTraces(t *testing.T) {
	var mu sync.Mutex
	var spans []*v1.Span
	var about, authorization string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		authorization = r.Header.Get("Authorization")
		for _, resource := range sent.ResourceSpans {
			about = resource.Resource.String()
			for _, scope := range resource.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}))
	defer server.Close()
	traces, err := NewTraces(t.Context(), TraceOptions{
		Endpoint: server.URL + "/v1/traces", Headers: map[string]string{"Authorization": "Bearer x"}, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	const trace, parent, call, upstream = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "1111111111111111", "2222222222222222"
	event := &request.Event{
		Method: "tools/call", Outcome: "TIMEOUT", Who: request.Who{Principal: "canary", Client: "canary"},
		Target:    request.Target{Server: "shop", Tool: "search", KnownServer: true, Known: true},
		Durations: request.Durations{Began: began, Duration: 3 * time.Second, Asked: began.Add(time.Second), Upstream: time.Second},
		Trace:     request.Trace{ID: trace, Spans: &request.Spans{Parent: parent, Call: call, Upstream: upstream}},
	}
	traces.Call(event)
	event.Method = "resources/read" // no call of a tool
	traces.Call(event)
	event.Method, event.Spans = "tools/call", nil // not sampled
	traces.Call(event)
	traces.Call(&request.Event{ // begins here, and asks no upstream
		Method: "tools/call", Outcome: "SERVER_NOT_FOUND", Target: request.Target{Server: "canary", Tool: "canary"}, Durations: request.Durations{Began: began},
		Trace: request.Trace{ID: "aa" + trace[2:], Spans: &request.Spans{Call: "3333333333333333", Upstream: "4444444444444444"}},
	})
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(spans) != 3 || authorization != "Bearer x" || !strings.Contains(about, "mcpx") || !strings.Contains(about, "1.2.3") {
		t.Fatalf("%d spans, %q, %s", len(spans), authorization, about)
	}
	for i, want := range []struct {
		name, trace, id, parent string
		kind                    v1.Span_SpanKind
		from, to                time.Duration
	}{
		{"tools/call search", trace, call, parent, v1.Span_SPAN_KIND_SERVER, 0, 3 * time.Second},
		{"tools/call search", trace, upstream, call, v1.Span_SPAN_KIND_CLIENT, time.Second, 2 * time.Second},
		{"tools/call", "aa" + trace[2:], "3333333333333333", "", v1.Span_SPAN_KIND_SERVER, 0, 0},
	} {
		s := spans[i]
		if s.Name != want.name || hex.EncodeToString(s.TraceId) != want.trace || hex.EncodeToString(s.SpanId) != want.id || hex.EncodeToString(s.ParentSpanId) != want.parent || s.Kind != want.kind ||
			s.StartTimeUnixNano != uint64(began.Add(want.from).UnixNano()) || s.EndTimeUnixNano != uint64(began.Add(want.to).UnixNano()) || s.Status.Code != v1.Status_STATUS_CODE_ERROR {
			t.Errorf("%s, want %+v", s, want)
		}
		if text := s.String(); strings.Contains(text, "canary") || !strings.Contains(text, "error.type") {
			t.Error(text)
		}
	}
}

// A collector that is not there costs no call, and one line of the log.
func TestTraces_unreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var said bytes.Buffer
	traces, err := NewTraces(t.Context(), TraceOptions{Endpoint: server.URL + "/v1/traces", Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	traces.Call(&request.Event{
		Method: "tools/call", Durations: request.Durations{Began: time.Now()},
		Trace: request.Trace{ID: "0af7651916cd43dd8448eb211c80319c", Spans: &request.Spans{Call: "1111111111111111"}},
	})
	began := time.Now()
	err = traces.Close()
	if took := time.Since(began); took > 2*time.Minute || err == nil && said.Len() == 0 {
		t.Errorf("%v, %v, %s", took, err, said.String())
	}
}
