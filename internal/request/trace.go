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

// A trace goes through _meta (SEP-414): where nobody wants spans of mcpx, the client's
// traceparent reaches the upstream as it is; else the upstream gets the span of the request
// to it, whose parent is the span of the call, whose parent is the client's.

// Tracing says which calls get spans.
type Tracing struct {
	// Share is how many of the traces that begin here are sampled, 0 to 1. A trace that the
	// client has begun is sampled if the client says so.
	Share float64
}

const traceparentName = "traceparent"

// Begin finds the trace of a message in its _meta, and begins the spans of the call, if they are wanted: then the server gets
// the span of the request to it. A nil *Tracing begins none.
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

// newID is so many random bytes in hex.
func newID(bytes int) string {
	id := make([]byte, bytes)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// parseTraceparent reads a traceparent (W3C Trace Context), a JSON string: the ids of the
// trace and of the parent in hex, and whether the trace is sampled. The ids are empty if it
// is none.
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
