package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"mcpx/internal/request"
)

// collected is a collector that parses spans in the same way as the OpenTelemetry Collector.
type collected struct {
	mu      sync.Mutex
	spans   []ptrace.Span
	about   map[string]any // attributes of the resource
	headers http.Header
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	sent := ptraceotlp.NewExportRequest()
	if err := sent.UnmarshalJSON(body); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, fmt.Sprint(r.URL, err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header
	for _, resource := range sent.Traces().ResourceSpans().All() {
		c.about = resource.Resource().Attributes().AsRaw()
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				c.spans = append(c.spans, span)
			}
		}
	}
}

// TestTraces: a sampled call yields two spans, which have the IDs that were made for it and are below the client's
// span.
func TestTraces(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=a%20b, service.name=other,broken")
	t.Setenv("OTEL_SERVICE_NAME", "gateway")
	var c collected
	server := httptest.NewServer(&c)
	defer server.Close()
	traces := NewTraces(TraceOptions{
		Endpoint: server.URL + "/v1/traces", Headers: map[string]string{"Authorization": "Bearer x"}, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler),
	})
	began := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	const trace, parent, call, upstream = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "1111111111111111", "2222222222222222"
	event := &request.Event{
		Method: "tools/call", Outcome: "TIMEOUT", Who: request.Who{Principal: "canary", Client: "canary"},
		Target:    request.Target{Server: "shop", Tool: "search", KnownServer: true, Known: true},
		Durations: request.Durations{Began: began, Duration: 3 * time.Second, Asked: began.Add(time.Second), Upstream: time.Second},
		Trace:     request.Trace{ID: trace, Spans: &request.Spans{Parent: parent, Call: call, Upstream: upstream}},
	}
	traces.Call(event)
	event.Method = "resources/read" // not the call of a tool
	traces.Call(event)
	event.Method, event.Spans = "tools/call", nil // not sampled
	traces.Call(event)
	traces.Call(&request.Event{ // has no parent span, and was not sent to an upstream
		Method: "tools/call", Outcome: "SERVER_NOT_FOUND", Target: request.Target{Server: "canary", Tool: "canary"}, Durations: request.Durations{Began: began},
		Trace: request.Trace{ID: "aa" + trace[2:], Spans: &request.Spans{Call: "3333333333333333", Upstream: "4444444444444444"}},
	})
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	about := map[string]any{"deployment.environment": "a b", "service.name": "gateway", "service.version": "1.2.3"}
	if len(c.spans) != 3 || c.headers.Get("Authorization") != "Bearer x" || !maps.Equal(c.about, about) {
		t.Fatalf("%d spans, %q, %s", len(c.spans), c.headers, c.about)
	}
	for i, want := range []struct {
		name, trace, id, parent string
		kind                    ptrace.SpanKind
		flags                   uint32
		from, to                time.Duration
	}{
		{"tools/call search", trace, call, parent, ptrace.SpanKindServer, 0x301, 0, 3 * time.Second},
		{"tools/call search", trace, upstream, call, ptrace.SpanKindClient, 0x101, time.Second, 2 * time.Second},
		{"tools/call", "aa" + trace[2:], "3333333333333333", "", ptrace.SpanKindServer, 0x101, 0, 0},
	} {
		s := c.spans[i]
		if s.Name() != want.name || s.TraceID().String() != want.trace || s.SpanID().String() != want.id || s.ParentSpanID().String() != want.parent ||
			s.Kind() != want.kind || s.Flags() != want.flags || s.Status().Code() != ptrace.StatusCodeError ||
			s.StartTimestamp() != pcommon.NewTimestampFromTime(began.Add(want.from)) || s.EndTimestamp() != pcommon.NewTimestampFromTime(began.Add(want.to)) {
			t.Errorf("span %d, want %+v", i, want)
		}
		attributes := s.Attributes().AsRaw()
		if text := fmt.Sprint(attributes); strings.Contains(text, "canary") || attributes["error.type"] == nil {
			t.Error(text)
		}
	}
}

// TestTraces_later: spans that the collector cannot accept at the moment are sent again; spans that it refuses are
// not. The same error is logged only once.
func TestTraces_later(t *testing.T) {
	for code, sent := range map[int]int{http.StatusServiceUnavailable: 3, http.StatusBadRequest: 1} {
		synctest.Test(t, func(t *testing.T) {
			var bodies []string
			var said bytes.Buffer
			traces := NewTraces(TraceOptions{Endpoint: "http://collector/v1/traces", Logger: slog.New(slog.NewTextHandler(&said, nil))})
			traces.client.Transport = roundTripper(func(r *http.Request) *http.Response {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				return &http.Response{StatusCode: code, Body: http.NoBody}
			})
			traces.Call(&request.Event{
				Method: "tools/call", Durations: request.Durations{Began: time.Now()},
				Trace: request.Trace{ID: "0af7651916cd43dd8448eb211c80319c", Spans: &request.Spans{Call: "1111111111111111"}},
			})
			time.Sleep(2*batchPause + time.Second)
			_ = traces.Close()
			if len(bodies) != sent || bodies[0] != bodies[len(bodies)-1] || strings.Count(said.String(), "traces were not sent") != 1 {
				t.Errorf("%d: %q, %s", code, bodies, &said)
			}
		})
	}
}

type roundTripper func(r *http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestTraces_unreachable: while a request to the collector hangs, calls are not delayed, not even when the queue is full. Close
// gives the collector one second.
func TestTraces_unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		traces := NewTraces(TraceOptions{Endpoint: "http://collector/v1/traces", Logger: slog.New(slog.NewTextHandler(&said, nil))})
		requests := 0
		traces.client.Transport = roundTripper(func(r *http.Request) *http.Response {
			requests++
			<-r.Context().Done()
			return nil
		})
		call := func() {
			traces.Call(&request.Event{
				Method: "tools/call", Durations: request.Durations{Began: time.Now()},
				Trace: request.Trace{ID: "0af7651916cd43dd8448eb211c80319c", Spans: &request.Spans{Call: "1111111111111111"}},
			})
		}
		call()
		time.Sleep(batchPause + time.Second)
		synctest.Wait()
		if requests != 1 || said.Len() > 0 {
			t.Fatalf("%d requests, want one that hangs; %s", requests, &said)
		}
		began := time.Now() // the time of synctest: it goes on only if a call waits
		for range 2 * maxWaiting {
			call()
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the calls were delayed by %v", took)
		}
		began = time.Now()
		if err := traces.Close(); err == nil || time.Since(began) > closeWithin {
			t.Errorf("Close took %v: %v", time.Since(began), err)
		}
	})
}
