package front

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// BenchmarkCall measures one small call through all of mcpx: from the bytes that a client sends to the pipe of a child process
// and back. Over HTTP the call begins with a request that net/http has parsed. The time includes the child's; the allocations
// do not.
func BenchmarkCall(b *testing.B) {
	command, args, env := mcptest.Spec{}.Stdio(b)
	spec := upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.Stdio, Launch: transport.Launch{Command: command, Args: args}}}
	for variable, value := range env {
		spec.Launch.Env = append(spec.Launch.Env, variable+"="+value)
	}
	r := registry.New([]registry.Server{{Spec: spec}}, registry.Options{})
	e := executor.New(r, executor.Options{TOON: true, TypeScript: true})
	r.Use(e.Chain(nil, nil)...)
	two := view.NewTwoTools(r, e, view.Options{})
	f := New(two, Options{Version: "1"})
	r.Start()
	b.Cleanup(func() {
		f.Close()
		two.Close()
		r.Close(time.Second)
	})
	r.WaitTried(context.Background())
	legacy := strings.TrimSpace(execLine("1", "fake", "echo", `{"text":"hello"}`))
	calls := map[string]string{legacyEra: legacy, modernEra: strings.Replace(legacy, `"params":{`, `"params":{`+modernMeta+`,`, 1)}
	for _, era := range []string{legacyEra, modernEra} {
		b.Run("stdio/"+era, func(b *testing.B) { benchmarkStdio(b, f, calls[era]) })
		b.Run("http/"+era, func(b *testing.B) { benchmarkHTTP(b, f, era, calls[era]) })
	}
}

func benchmarkStdio(b *testing.B, f *Front, call string) {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- f.ServeStdio(context.Background(), inRead, outWrite, StdioOptions{}) }() // the goroutine ends with the input
	lines := bufio.NewReaderSize(outRead, 1<<16)
	one := func(message string) {
		if _, err := io.WriteString(inWrite, message); err != nil {
			b.Fatal(err)
		}
		if line, err := lines.ReadSlice('\n'); err != nil || strings.Contains(string(line[:30]), "error") {
			b.Fatalf("%s, %v", line, err)
		}
	}
	one(strings.SplitAfter(hello("bench"), "\n")[0])
	call += "\n"
	b.ReportAllocs()
	for b.Loop() {
		one(call)
	}
	inWrite.Close()
	if err := <-served; err != nil {
		b.Error(err)
	}
}

// discarded is a response writer that keeps only the status and drops the body.
type discarded struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (d *discarded) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discarded) WriteHeader(status int) { d.status = status }

// Write implements http.ResponseWriter.
func (*discarded) Write(p []byte) (int, error) { return len(p), nil }

func benchmarkHTTP(b *testing.B, f *Front, era, call string) {
	header := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {era}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"exec"},
	}
	if era == legacyEra {
		record := &Session{}
		id, err := f.options.Sessions.Open(b.Context(), record, time.Time{})
		if err != nil {
			b.Fatal(err)
		}
		s := f.live(id, record, nil, nil, true)
		header.Set("Mcp-Session-Id", s.id)
		defer f.release(s)
	}
	// net/http gives each request such a context: it ends with the connection and contains the server.
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), http.ServerContextKey, &http.Server{WriteTimeout: 2 * time.Minute}))
	defer cancel()
	request := (&http.Request{Method: "POST", Header: header, RemoteAddr: "127.0.0.1:1"}).WithContext(ctx)
	body := strings.NewReader(call)
	request.Body, request.ContentLength = io.NopCloser(body), body.Size()
	endpoint := f
	w := &discarded{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		w.status = 200
		body.Reset(call)
		endpoint.ServeHTTP(w, request)
		if w.status != 200 {
			b.Fatal(w.status)
		}
	}
}
