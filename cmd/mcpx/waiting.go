package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/catalog"
	"mcpx/internal/config"
)

// tryAll returns when every server has been tried, or with ctx. Meanwhile it shows
// on stderr how that goes. slow are the servers that took all of their time
// where a first run downloads the program.
func tryAll(ctx context.Context, a *app.App, s streams) (slow []string) {
	began := time.Now()
	var mu sync.Mutex
	var tries sync.WaitGroup // ends with the attempts, or with ctx
	for _, server := range a.Config.Servers {
		if !downloads(server) {
			continue
		}
		tries.Go(func() {
			a.Registry.WaitServer(ctx, server.Name)
			if outOfTime(a, server, began) {
				mu.Lock()
				slow = append(slow, server.Name)
				mu.Unlock()
			}
		})
	}
	tried := make(chan struct{})
	go func() { // ends with the attempts, or with ctx
		defer close(tried)
		a.Registry.WaitTried(ctx)
	}()
	show := &progress{w: s.err, s: s.watched, look: func() []attempt { return attempts(a) }}
	show.show(tried)
	tries.Wait()
	slices.Sort(slow)
	return slow
}

// outOfTime reports whether the first attempt of a server that was never seen
// before took all of its time.
func outOfTime(a *app.App, server config.Server, began time.Time) bool {
	one, ok := a.Executor.Catalogue(nil).Server(server.Name)
	return ok && !one.Known && one.State == catalog.Unavailable && time.Since(began) >= server.ConnectTimeout
}

// hintDownload prints a remedy for a server whose download did not end in time,
// after a command that has waited for it alone since began.
func hintDownload(a *app.App, w io.Writer, name string, began time.Time) {
	for _, server := range a.Config.Servers {
		if server.Name == name && downloads(server) && outOfTime(a, server, began) {
			sayDownload(w, name)
		}
	}
}

func sayDownload(w io.Writer, name string) {
	fmt.Fprintf(w, "mcpx: hint: %s: its first run downloads the program, which can take longer than connect_timeout; run its command once by hand, or raise connect_timeout\n", name)
}

// downloaders are the programs that fetch what they run.
var downloaders = []string{"npx", "pnpx", "bunx", "uvx", "pipx", "docker", "podman"}

// downloads reports whether the first run of a server downloads it. Windows has
// "cmd /c npx".
func downloads(s config.Server) bool {
	words := append([]string{s.Command}, s.Args[:min(len(s.Args), 2)]...)
	return s.Type == config.Stdio && slices.ContainsFunc(words, func(word string) bool {
		word = strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
		return slices.Contains(downloaders, strings.TrimSuffix(strings.TrimSuffix(word, ".exe"), ".cmd"))
	})
}
