package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/request"
)

// Traces sends spans to an OpenTelemetry collector: one for each sampled call, and one more for the call's requests to the server,
// if there were any. It sends them in batches of OTLP/JSON over HTTP (docs/decisions/0043).
type Traces struct {
	options  TraceOptions
	resource []attribute
	client   http.Client
	spans    chan span
	stop     context.CancelFunc // ends run, which then sends the remaining spans
	closed   chan error         // receives the error of the last batch
}

// TraceOptions say where spans are sent.
type TraceOptions struct {
	// Endpoint is the complete URL, which usually ends in /v1/traces.
	Endpoint string
	Headers  map[string]string
	Version  string
	Logger   *slog.Logger
}

// maxWaiting, maxBatch and batchPause are the defaults of OpenTelemetry's batch processor. sendWithin is how long one request to
// the collector may take, and closeWithin how long the last one may take.
const (
	maxWaiting  = 2048 // spans; if more are waiting for the collector, new ones are dropped
	maxBatch    = 512  // spans in one request
	batchPause  = 5 * time.Second
	sendWithin  = 10 * time.Second
	closeWithin = time.Second
)

// NewTraces makes traces. The caller must close them. If the collector cannot be reached, this is only logged.
func NewTraces(o TraceOptions) *Traces {
	ctx, stop := context.WithCancel(context.Background())
	t := &Traces{
		options: o, resource: resource(o.Version, os.Getenv), spans: make(chan span, maxWaiting),
		stop: stop, closed: make(chan error, 1),
	}
	go t.run(ctx) // ends with Close, which waits for it
	return t
}

// Close sends the spans that wait for the collector, which takes at most a second. [Traces.Call] must not be called afterwards.
func (t *Traces) Close() error {
	t.stop()
	return <-t.closed
}

// run sends batches until ctx ends, and then the last batch. If the collector may accept a batch later, run sends it again: at the
// next tick, or as soon as the batch is full.
func (t *Traces) run(ctx context.Context) {
	tick := time.NewTicker(batchPause)
	defer tick.Stop()
	var batch []span
	var said string // the error that was logged last
	for {
		spans := t.spans
		if len(batch) == maxBatch {
			spans = nil
		}
		select {
		case one := <-spans:
			if batch = append(batch, one); len(batch) < maxBatch {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			for len(t.spans) > 0 {
				batch = append(batch, <-t.spans)
			}
			_, err := t.send(context.Background(), batch, closeWithin)
			t.closed <- err
			return
		}
		later, err := t.send(ctx, batch, sendWithin)
		if err != nil && err.Error() != said && ctx.Err() == nil {
			t.options.Logger.Warn("traces were not sent", "spans", len(batch), "again", later, "err", err)
			said = err.Error()
		}
		if !later {
			batch = batch[:0]
		}
	}
}

// send sends a batch to the collector. After an error, later says whether the same batch should be sent again.
func (t *Traces) send(ctx context.Context, batch []span, timeout time.Duration) (later bool, err error) {
	if len(batch) == 0 {
		return false, nil
	}
	body, err := json.Marshal(export{[]resourceSpans{{attributes{t.resource}, []scopeSpans{{scope{"mcpx", t.options.Version}, batch}}}}})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.options.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range t.options.Headers {
		r.Header.Set(name, value)
	}
	answer, err := t.client.Do(r)
	if err != nil {
		return true, err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	switch code := answer.StatusCode; {
	// With these codes, the collector asks to retry later, according to OTLP.
	case code == http.StatusTooManyRequests, code >= http.StatusBadGateway && code <= http.StatusGatewayTimeout:
		return true, fmt.Errorf("the collector answered %s", answer.Status)
	case code/100 != 2:
		return false, fmt.Errorf("the collector answered %s: %.200s", answer.Status, said)
	}
	var partial struct {
		PartialSuccess struct{ ErrorMessage string }
	}
	if json.Unmarshal(said, &partial) == nil && partial.PartialSuccess.ErrorMessage != "" {
		return false, fmt.Errorf("the collector took a part of the spans: %.200s", partial.PartialSuccess.ErrorMessage)
	}
	return false, nil
}

// Call is an observer: mcpx calls it at the end of each [request.Event]. It makes the spans of a sampled call. The first is for the
// call; its parent is the client's span, if the client began the trace. If mcpx tried to send something to the upstream, the call's
// span gets a child for that, whose ID was sent in _meta.traceparent. Spans contain no arguments, no results, and no names that are
// not in the catalogue.
func (t *Traces) Call(r *request.Event) {
	if r.Spans == nil || !r.IsCall() {
		return
	}
	call := span{
		TraceID: r.Trace.ID, SpanID: r.Spans.Call, ParentSpanID: r.Spans.Parent, Flags: sampled | parentKnown,
		Name: "tools/call", Kind: kindServer,
		Attributes: []attribute{text("mcp.method.name", "tools/call"), text("gen_ai.operation.name", "execute_tool")},
	}
	if call.ParentSpanID != "" {
		call.Flags |= parentRemote
	}
	if r.Known {
		call.Name += " " + r.Tool
		call.Attributes = append(call.Attributes, text("gen_ai.tool.name", r.Tool), text("mcpx.server", r.Server))
	}
	if r.Outcome != "RESULT" {
		call.Attributes = append(call.Attributes, text("error.type", r.Outcome))
		call.Status.Code = statusError
	}
	upstream := call
	call.lasted(r.Began, r.Duration)
	t.add(call)
	if r.Upstream > 0 {
		upstream.SpanID, upstream.ParentSpanID = r.Spans.Upstream, r.Spans.Call
		upstream.Flags, upstream.Kind = sampled|parentKnown, kindClient
		upstream.lasted(r.Asked, r.Upstream)
		t.add(upstream)
	}
}

// add queues a span for the collector. If too many spans wait already, add drops it, because a call must not wait for the
// collector.
func (t *Traces) add(one span) {
	select {
	case t.spans <- one:
	default:
	}
}

// These types are the OTLP/JSON message (opentelemetry-proto, ExportTraceServiceRequest). IDs are in hex, and 64-bit
// numbers are strings.
type (
	export struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   attributes   `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID      string      `json:"traceId"`
		SpanID       string      `json:"spanId"`
		ParentSpanID string      `json:"parentSpanId,omitempty"`
		Flags        int         `json:"flags"`
		Name         string      `json:"name"`
		Kind         int         `json:"kind"`
		Start        string      `json:"startTimeUnixNano"`
		End          string      `json:"endTimeUnixNano"`
		Attributes   []attribute `json:"attributes"`
		Status       status      `json:"status"`
	}
	status struct {
		Code int `json:"code,omitempty"`
	}
	attributes struct {
		Attributes []attribute `json:"attributes"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value struct {
			Text string `json:"stringValue"`
		} `json:"value"`
	}
)

const (
	kindServer, kindClient, statusError = 2, 3, 2

	sampled, parentKnown, parentRemote = 0x001, 0x100, 0x200
)

func (s *span) lasted(began time.Time, took time.Duration) {
	s.Start, s.End = strconv.FormatInt(began.UnixNano(), 10), strconv.FormatInt(began.Add(took).UnixNano(), 10)
}

func text(key, value string) (a attribute) {
	a.Key, a.Value.Text = key, value
	return a
}

// resource describes this process. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME take precedence over the values
// that mcpx sets.
func resource(version string, env func(string) string) []attribute {
	name := "mcpx"
	var all []attribute
	for pair := range strings.SplitSeq(env("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if plain, err := url.PathUnescape(strings.TrimSpace(value)); err == nil {
			value = plain
		}
		switch {
		case !ok || key == "":
		case key == "service.name":
			name = value
		case key == "service.version":
			version = value
		default:
			all = append(all, text(key, value))
		}
	}
	name = cmp.Or(env("OTEL_SERVICE_NAME"), name)
	return append(all, text("service.name", name), text("service.version", version))
}
