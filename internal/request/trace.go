package request

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	mathrand "math/rand/v2"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
)

// mcpx passes traces on to servers in _meta (SEP-414). If it makes no spans, the client's traceparent reaches the upstream
// unchanged. If it makes spans, the call's span is a child of the client's span, and mcpx's request to the upstream has a span that
// is a child of the call's span. The upstream gets a traceparent with the span of the request.

// Tracing decides which calls get spans, the timed parts of a trace.
type Tracing struct {
	// Share says which part of the traces that mcpx begins are sampled, as a number from 0 to 1. A trace that the client began is
	// sampled if the client says so.
	Share float64
}

const traceparentName = "traceparent"

// Begin reads the trace from r.Meta, which comes from the message's _meta, and puts it into the event. If the trace is sampled,
// Begin makes the spans, and replaces the traceparent in r.Meta by one with the span of the request to the server. A nil *Tracing
// makes no spans.
func (t *Tracing) Begin(r *From) {
	at := slices.IndexFunc(r.Meta, func(m Meta) bool { return m.Name == traceparentName })
	parent, sampled := "", false
	if at >= 0 {
		raw, _ := r.Meta[at].Value.(json.RawMessage)
		r.Event.Trace.ID, parent, sampled = parseTraceparent(raw)
	}
	switch {
	case t == nil:
		return
	case r.Event.Trace.ID == "" && mathrand.Float64() < t.Share:
		r.Event.Trace.ID, sampled = newID(16), true
	}
	if !sampled {
		return
	}
	spans := &Spans{Parent: parent, Call: newID(8), Upstream: newID(8)}
	r.Event.Trace.Spans = spans
	member := Meta{Name: traceparentName, Value: "00-" + r.Event.Trace.ID + "-" + spans.Upstream + "-01"}
	if at >= 0 {
		r.Meta = slices.Clone(r.Meta)
		r.Meta[at] = member
		return
	}
	r.Meta = append(slices.Clip(r.Meta), member)
}

// newID returns this number of random bytes, in hex.
func newID(bytes int) string {
	id := make([]byte, bytes)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// parseTraceparent reads a traceparent (W3C Trace Context). raw is the traceparent as a JSON string. It returns the ids of trace
// and parent in hex, and whether the trace is sampled. The ids are empty if the traceparent is invalid.
func parseTraceparent(raw json.RawMessage) (trace, parent string, sampled bool) {
	text, _ := wire.Text(raw)
	parts := strings.SplitN(text, "-", 5) // a later version may have more parts
	if len(parts) < 4 || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return "", "", false
	}
	var ids [25]byte // the trace, its parent, the flags
	_, err := hex.Decode(ids[:], []byte(parts[1]+parts[2]+parts[3]))
	if err != nil || [16]byte(ids[:16]) == [16]byte{} || [8]byte(ids[16:24]) == [8]byte{} || text != strings.ToLower(text) {
		return "", "", false
	}
	return parts[1], parts[2], ids[24]&1 != 0
}
