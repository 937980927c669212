package registry

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// TestThousandServers: hundreds of servers, over HTTP, SSE and pipes and as processes (with MCPX_FULL=1 a thousand), are added
// and removed while another server keeps running. No goroutine and no file descriptor is left over.
func TestThousandServers(t *testing.T) {
	mcptest.NoLeaks(t)
	web, modern, sse := mcptest.Spec{}.HTTP(t), mcptest.Spec{Era: mcptest.EraModern}.HTTP(t), mcptest.Spec{}.SSE(t)
	stay := Server{Spec: over(transport.HTTP, "stays", web.URL), Definition: "stays"}
	r := start(t, Options{}, stay)
	tried(t, r)
	round := 0
	churn := func(rounds, children int) {
		for range rounds {
			round++
			servers := []Server{stay}
			for i := range 8 {
				for _, spec := range []upstream.Spec{over(transport.HTTP, "", web.URL), over(transport.HTTP, "", modern.URL), over(transport.SSE, "", sse.URL)} {
					spec.Name = fmt.Sprintf("%s %d", spec.Remote.URL, i)
					servers = append(servers, Server{Spec: spec, Definition: fmt.Sprint(round)})
				}
			}
			servers = append(servers, Server{Spec: piped(t, "pipe", mcptest.Spec{}).Spec, Definition: fmt.Sprint(round)})
			if round <= children {
				one := child(t, "child", mcptest.Spec{})
				one.Definition = fmt.Sprint(round)
				servers = append(servers, one)
			}
			r.Apply(servers, Options{}, nil)
			tried(t, r)
		}
		r.Apply([]Server{stay}, Options{}, nil)
		if got, err := call(r, "stays", nil, "echo", `{"text":"still here"}`); err != nil || got != "still here" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	churn(2, 1)
	goroutines, files := held()
	churn(mcptest.Rounds(t, 40, 12), 8)
	mcptest.WaitFor(t, "the end of all connections", patience, func() bool {
		g, f := held()
		return g <= goroutines && f <= files
	})
	if status, _ := r.Status("stays"); status.Restarts != 0 {
		t.Errorf("the server that stays was lost %d times", status.Restarts)
	}
}

// held returns how many goroutines and, on systems with /proc, how many file descriptors this process has.
func held() (goroutines, files int) {
	entries, _ := os.ReadDir("/proc/self/fd") // systems other than Linux have no such folder
	return runtime.NumGoroutine(), len(entries)
}
