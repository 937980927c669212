package mcptest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
)

// ServeRegistry serves the answers in a file as an MCP registry does, version 0.1 of its API, and returns its URL. The file has
// the list of all servers, in the form of the registry's answer.
func ServeRegistry(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Servers  []json.RawMessage `json:"servers"`
		Metadata json.RawMessage   `json:"metadata"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	all := list.Servers
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", func(w http.ResponseWriter, r *http.Request) {
		list.Servers = []json.RawMessage{}
		for _, one := range all {
			if strings.Contains(strings.ToLower(string(one)), strings.ToLower(r.FormValue("search"))) {
				list.Servers = append(list.Servers, one)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/latest", func(w http.ResponseWriter, r *http.Request) {
		name, _ := url.PathUnescape(r.PathValue("name"))
		for _, one := range all {
			var answer struct {
				Server struct{ Name string }
			}
			if json.Unmarshal(one, &answer) == nil && answer.Server.Name == name {
				_, _ = w.Write(one)
				return
			}
		}
		http.Error(w, `{"title":"Not Found","status":404,"detail":"Server not found"}`, http.StatusNotFound)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
