package view

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// TestCall_Prefers: the server that the first call names is among the first that start, even if it is the last of eight.
func TestCall_Prefers(t *testing.T) {
	for _, tool := range []string{InspectTool, ExecTool} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var began []string
			var servers []registry.Server
			for i := range 8 {
				name := fmt.Sprint("s", i)
				serve := mcptest.Spec{InstallFor: time.Minute, InstallEvery: time.Second}.Serve(t, func(func() mcptest.Log) {
					mu.Lock()
					defer mu.Unlock()
					began = append(began, name)
				})
				servers = append(servers, registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.InProcess, Launch: transport.Launch{Command: "npx"}, Serve: serve}}})
			}
			r := registry.New(servers, registry.Options{})
			v := NewTwoTools(r, chained(r, executor.Options{}), Options{})
			defer r.Close(0)
			defer v.Close()
			var loops sync.WaitGroup
			loops.Go(func() { // ends with the first call
				<-r.Needed()
				r.Start()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = v.Call(ctx, Call{Name: tool, Arguments: json.RawMessage(`{"server_name":"s7","tool_name":"echo"}`)})
			loops.Wait()
			mu.Lock()
			defer mu.Unlock()
			for _, name := range began {
				if name == "s7" {
					return
				}
			}
			t.Errorf("%s: %v began first", tool, began)
		})
	}
}
