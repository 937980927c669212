package front

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"

	"mcpx/internal/caller"
)

// firstBody is the most that is set aside for a body before any of it has come: a claim
// costs its sender nothing.
const firstBody = 16 << 10

// errBodies refuses a body that would take too much memory beside others.
var errBodies = errors.New("too many large bodies at once")

// readBody reads the body of a request. It answers an unreadable body with plain
// text: a JSON-RPC error needs the id of the request, which is unknown.
func (f *Front) readBody(w http.ResponseWriter, r *http.Request) (data []byte, ok bool) {
	most := f.options.MaxMessage
	var err error
	switch encoding := headerOf(r, "Content-Encoding"); {
	case encoding != "" && encoding != "identity":
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 12.5.3
		http.Error(w, "the body must not be compressed", http.StatusUnsupportedMediaType)
		return nil, false
	case r.ContentLength > most:
		err = &http.MaxBytesError{Limit: most}
	default:
		data, err = f.grow(w, r)
		// At the end of a body net/http starts a goroutine that notices when the client
		// goes. It begins to wait now, on this thread; else a second thread wakes up for it
		// and takes a core that the server or the client is about to need.
		runtime.Gosched()
	}
	switch tooLarge, _ := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge != nil:
		w.Header().Set("Connection", "close")
		http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
	case errors.Is(err, errBodies):
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error()+"; try again in 1 s", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "the body could not be read", http.StatusBadRequest)
	}
	return data, err == nil
}

// pause waits so long, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// grow reads a body into a buffer that grows as the bytes come. What is beyond firstBody
// counts for the principal until it is read.
func (f *Front) grow(w http.ResponseWriter, r *http.Request) (data []byte, err error) {
	body, size := r.Body, int(min(r.ContentLength, firstBody))
	if r.ContentLength < 0 { // else net/http ends it there
		body, size = http.MaxBytesReader(w, r.Body, f.options.MaxMessage), firstBody
	}
	var who *caller.Principal
	counted := 0
	defer func() { f.options.Admission.BodyRead(who, counted) }()
	for data = make([]byte, 0, size); ; {
		if len(data) == cap(data) {
			if int64(len(data)) == r.ContentLength {
				return data, nil
			}
			most := 4 * max(cap(data), 512)
			if length := r.ContentLength; length >= 0 {
				most = int(min(int64(most), length))
			}
			who = caller.From(r.Context())
			wait, ok := f.options.Admission.ReadBody(who, most-counted)
			if !ok {
				return nil, errBodies
			}
			counted = most
			if err := pause(r.Context(), wait); err != nil {
				return nil, err
			}
			data = slices.Grow(data, most-len(data))[:len(data):most]
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF) && r.ContentLength >= 0 && int64(len(data)) < r.ContentLength:
			return data, io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return data, err
		}
	}
}
