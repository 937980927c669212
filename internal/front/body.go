package front

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"

	"mcpx/internal/base/delay"
	"mcpx/internal/caller"
)

// firstBody limits the memory, in bytes, that is allocated for a body before any of it has arrived. The declared Content-Length
// is not trusted.
const firstBody = 16 << 10

// errBodies is the error for a body that is refused because the bodies being read already take too much memory.
var errBodies = errors.New("too many large bodies at once")

// readBody reads the body of a request. If ok is false, readBody has refused the request in plain text: a JSON-RPC error would need
// the request's id, which is not known yet.
func (f *Front) readBody(w http.ResponseWriter, r *http.Request) (data []byte, ok bool) {
	limit := f.options.MaxMessage
	var err error
	switch encoding := headerOf(r, "Content-Encoding"); {
	case encoding != "" && encoding != "identity":
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, section 12.5.3
		http.Error(w, "the body must not be compressed", http.StatusUnsupportedMediaType)
		return nil, false
	case r.ContentLength > limit:
		err = &http.MaxBytesError{Limit: limit}
	default:
		data, err = f.grow(w, r)
		if err == nil {
			_ = r.Body.Close() // without this, net/http would look for more of the body before it writes the answer
		}
		// At the end of a body net/http starts a goroutine that notices the client's disconnect. Gosched lets that goroutine start
		// on this thread. Otherwise a second thread would wake up and take a core that the call needs.
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

// grow reads a body into a buffer that grows as the bytes arrive. While it reads, a buffer larger than firstBody counts towards
// the principal's limit for bodies.
func (f *Front) grow(w http.ResponseWriter, r *http.Request) (data []byte, err error) {
	body, size := r.Body, int(min(r.ContentLength, firstBody))
	if r.ContentLength < 0 { // no length is declared, so net/http sets no limit
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
			if wait > 0 && !delay.Sleep(r.Context(), wait) {
				return nil, r.Context().Err()
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
