package front

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// posted sends f a body with the given Content-Length (-1 means none) and returns the response.
func posted(f *Front, p *caller.Principal, body io.Reader, length int64, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/mcp", body)
	r.ContentLength = length
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r.WithContext(caller.With(context.Background(), p, time.Time{})))
	return w
}

// TestBody: mcpx reads a body completely, whatever its length and however many pieces it comes in. A body that
// cannot be read is refused in plain text.
func TestBody(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connectWith(t, Options{MaxMessage: 1 << 20}, view.Options{})
	// mcpx can answer only if it has read the end of the message.
	message := func(size int) string {
		const begin, end = `{"jsonrpc":"2.0","method":"initialize","params":{"x":"`, `","capabilities":{},"clientInfo":{"name":"t","version":"1"},"protocolVersion":"2025-06-18"},"id":"end"}`
		return begin + strings.Repeat("x", max(0, size-len(begin)-len(end))) + end
	}
	for _, size := range []int{0, firstBody - 1, firstBody, firstBody + 1, 4 * firstBody, 4*firstBody + 1, 1 << 20} {
		for _, claim := range []bool{true, false} {
			for _, inPieces := range []bool{true, false} {
				var body io.Reader = strings.NewReader(message(size))
				length := int64(len(message(size)))
				if inPieces {
					body = iotest.DataErrReader(iotest.HalfReader(body))
				}
				if !claim {
					length = -1
				}
				if w := posted(f.Front, nil, body, length); w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":"end","result":`) {
					t.Errorf("%d bytes, claimed %v, in pieces %v: %d %s", size, claim, inPieces, w.Code, w.Body)
				}
			}
		}
	}
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zip, message(0))
	zip.Close()
	for name, test := range map[string]struct {
		body    io.Reader
		length  int64
		headers []string
		status  int
		want    string
	}{
		"one byte too many":    {strings.NewReader(message(1<<20 + 1)), -1, nil, 413, "the body is too large"},
		"a claim too large":    {iotest.ErrReader(io.ErrNoProgress), 1<<20 + 1, nil, 413, "the body is too large"},
		"truncated":            {strings.NewReader(message(0)[:50]), 100, nil, 400, "the body could not be read"},
		"truncated at once":    {strings.NewReader(""), 100, nil, 400, "the body could not be read"},
		"truncated later":      {strings.NewReader(message(100_000)), 200_000, nil, 400, "the body could not be read"},
		"a broken connection":  {io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrClosedPipe)), 100, nil, 400, "the body could not be read"},
		"compressed":           {&zipped, int64(zipped.Len()), []string{"Content-Encoding", "gzip"}, 415, "the body must not be compressed"},
		"compressed, unsaid":   {bytes.NewReader(zipped.Bytes()), int64(zipped.Len()), nil, 400, "invalid JSON"},
		"no object":            {strings.NewReader(`"hello"`), -1, nil, 400, "the message must be a JSON object"},
		"an empty batch":       {strings.NewReader("[]"), -1, nil, 400, "the message must be a JSON object"},
		"said to be identical": {strings.NewReader(message(0)), -1, []string{"Content-Encoding", "identity"}, 200, `"id":"end"`},
	} {
		w := posted(f.Front, nil, test.body, test.length, test.headers...)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, test.status, test.want)
		}
		if w.Code != 200 && !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}

// TestBody_Room: the large bodies that one principal sends at the same time are bounded together, by the bytes
// that have arrived and not by their Content-Length. Small bodies and other principals do not have to wait.
func TestBody_Room(t *testing.T) {
	mcptest.NoLeaks(t)
	l := limits.New(conf.Limits{Principal: conf.Quota{BodyBytes: 1 << 20}})
	f := connectWith(t, Options{Admission: l}, view.Options{})
	large := strings.Repeat(" ", 300_000) + "{}"
	in, out := io.Pipe()
	ended := make(chan int, 1)
	go func() { // the goroutine ends with the pipe
		ended <- posted(f.Front, alice, in, 1_000_000).Code
	}()
	if _, err := out.Write([]byte(large)); err != nil { // mcpx reads until the limit is reached
		t.Fatal(err)
	}
	for _, test := range []struct {
		who  *caller.Principal
		body string
		want int
	}{{alice, large, 503}, {alice, "{}", 400}, {bob, large, 400}} {
		w := posted(f.Front, test.who, strings.NewReader(test.body), int64(len(test.body)))
		if w.Code != test.want || test.want == 503 && w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d bytes of %s: %d %s %v, want %d", len(test.body), test.who.ID, w.Code, w.Body, w.Header(), test.want)
		}
	}
	out.CloseWithError(io.ErrUnexpectedEOF)
	if status := <-ended; status != 400 {
		t.Errorf("the one that broke: %d", status)
	}
	if w := posted(f.Front, alice, strings.NewReader(large), int64(len(large))); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "no method") {
		t.Errorf("after its end: %d %s", w.Code, w.Body)
	}
}

var bob = &caller.Principal{ID: "bob"}
