package telemetry

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"mcpx/internal/request"
)

// Traces exports two spans for each sampled call, in batches. [Traces.Close] sends the last batch.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

type TraceOptions struct {
	// Endpoint is the whole URL, which usually ends in /v1/traces.
	Endpoint string
	Headers  map[string]string
	Version  string
	Logger   *slog.Logger
}

// NewTraces makes traces. An unreachable collector is only logged.
func NewTraces(ctx context.Context, o TraceOptions) (*Traces, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithHeaders(o.Headers))
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp: %w", err)
	}
	about := resource.NewSchemaless(attribute.String("service.name", "mcpx"), attribute.String("service.version", o.Version))
	if merged, err := resource.Merge(about, resource.Environment()); err == nil { // OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME
		about = merged
	}
	otel.SetErrorHandler(&exportErrors{log: o.Logger}) // instead of the standard logger
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(about),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // package executor has sampled the call already
		sdktrace.WithIDGenerator(spanIDs{}),
	)
	return &Traces{provider, provider.Tracer("mcpx")}, nil
}

// closeWithin bounds the time to send the last spans.
const closeWithin = time.Second

func (t *Traces) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Call observes [request.Event]. It makes the spans of a call after its end: one for the call, a child of the
// client's span, and below it one for the request to the upstream, whose id was sent in _meta.traceparent. No span
// has arguments, results, or names that are not in the catalogue.
func (t *Traces) Call(r *request.Event) {
	if r.Spans == nil || !r.IsCall() {
		return
	}
	name := "tools/call"
	attributes := []attribute.KeyValue{
		attribute.String("mcp.method.name", "tools/call"), attribute.String("gen_ai.operation.name", "execute_tool"),
	}
	if r.Known {
		name += " " + r.Tool
		attributes = append(attributes, attribute.String("gen_ai.tool.name", r.Tool), attribute.String("mcpx.server", r.Server))
	}
	failed := r.Outcome != "RESULT"
	if failed {
		attributes = append(attributes, attribute.String("error.type", r.Outcome))
	}
	ctx := context.Background()
	if parent := spanContext(r.Trace.ID, r.Spans.Parent); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	span := func(ctx context.Context, id string, kind trace.SpanKind, began time.Time, took time.Duration) context.Context {
		ctx = context.WithValue(ctx, nextSpan{}, spanContext(r.Trace.ID, id))
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(began), trace.WithAttributes(attributes...))
		if failed {
			span.SetStatus(codes.Error, "")
		}
		span.End(trace.WithTimestamp(began.Add(took)))
		return ctx
	}
	ctx = span(ctx, r.Spans.Call, trace.SpanKindServer, r.Began, r.Duration)
	if r.Upstream > 0 {
		span(ctx, r.Spans.Upstream, trace.SpanKindClient, r.Asked, r.Upstream)
	}
}

// spanContext makes a span context from hex ids; it is invalid if one is missing.
func spanContext(traceID, spanID string) trace.SpanContext {
	var config trace.SpanContextConfig
	_, _ = hex.Decode(config.TraceID[:], []byte(traceID))
	_, _ = hex.Decode(config.SpanID[:], []byte(spanID))
	config.TraceFlags, config.Remote = trace.FlagsSampled, true
	return trace.NewSpanContext(config)
}

// nextSpan is the context key for the ids of the next span. They were made before the call, whose request to the
// upstream contains them.
type nextSpan struct{}

// spanIDs is an id generator that takes the ids from the context.
type spanIDs struct{}

// NewIDs implements sdktrace.IDGenerator.
func (spanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	next := ctx.Value(nextSpan{}).(trace.SpanContext)
	return next.TraceID(), next.SpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (spanIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	return ctx.Value(nextSpan{}).(trace.SpanContext).SpanID()
}

// exportErrors logs export errors, without repeating the same text.
type exportErrors struct {
	log *slog.Logger

	mu   sync.Mutex
	last string
}

// Handle implements otel.ErrorHandler.
func (e *exportErrors) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if text := err.Error(); text != e.last {
		e.last = text
		e.log.Warn("traces are lost", "err", text)
	}
}
