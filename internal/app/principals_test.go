package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

const (
	patience  = 2 * time.Minute
	legacyEra = "2025-11-25"
	modernEra = "2026-07-28"
)

// endpoint is a complete mcpx over HTTP, with a token for each principal. The token is the principal's name.
type endpoint struct {
	app *App
	url string
	cfg *config.Config
	// stop begins the shutdown.
	stop func()
}

// hosted serves these servers, given by their URLs, with these rights. more has further members of the config, each after a
// comma.
func hosted(t *testing.T, servers map[string]string, rights, more string) *endpoint {
	t.Helper()
	return serving(t, configOf(t, servers, rights, more))
}

// serving serves a config on a free port of this machine, until the test ends.
func serving(t *testing.T, cfg *config.Config) *endpoint {
	t.Helper()
	return servingWith(t, cfg, nil)
}

// servingWith does what serving does, with the clientState of another App; nil means a new one.
func servingWith(t *testing.T, cfg *config.Config, state *clientState) *endpoint {
	t.Helper()
	ownFolders(t)
	a, err := New(Options{Config: cfg, Profile: Hosted, Log: slog.New(slog.DiscardHandler), state: state})
	if err != nil {
		t.Fatal(err)
	}
	closeTrail, err := a.OpenAudit()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.ServeHTTP(ctx, listener) }() // ends with stop
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		closeTrail()
	})
	a.Registry.Need()
	bounded, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	mcptest.WaitFor(t, "the servers", patience, func() bool {
		a.Registry.WaitTried(bounded)
		a.Registry.WaitListed(bounded, nil)
		for _, s := range a.Registry.Snapshot().Servers {
			if !s.Known || !s.Listed {
				return false
			}
		}
		return true
	})
	return &endpoint{a, "http://" + listener.Addr().String(), cfg, stop}
}

func configOf(t *testing.T, servers map[string]string, rights, more string) *config.Config {
	t.Helper()
	entries, tokens := make(map[string]any), make(map[string]any)
	for name, url := range servers {
		entries[name] = map[string]any{"type": "http", "url": url}
	}
	for _, name := range []string{"alice", "bob", "carol", "nobody"} {
		sum := sha256.Sum256([]byte(name))
		tokens[name] = map[string]any{"sha256": hex.EncodeToString(sum[:])}
	}
	all, _ := json.Marshal(entries)
	them, _ := json.Marshal(tokens)
	cfg, err := config.Parse("c.json", fmt.Appendf(nil, `{"mcpServers":%s,"sse":true,"health_check_enabled":false,"shutdown_grace":1,"auth":{"tokens":%s,"rights":%s}%s}`, all, them, rights, more), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// change applies a config with other rights, as a reload does.
func (e *endpoint) change(t *testing.T, servers map[string]string, rights, more string) {
	t.Helper()
	to := configOf(t, servers, rights, more)
	if err := e.app.reload(to); err != nil {
		t.Fatal(err)
	}
	e.cfg = to
}

// visitor is a client of one principal, in one era, over one transport.
type visitor struct {
	*endpoint
	who, era string
	name     string // the name of the client program
	sse      bool   // whether it uses the HTTP+SSE transport of 2024-11-05
	caps     string // the capabilities of the client, a JSON object
	sessions map[string]string
	streams  map[string]*stream
	last     int
}

func (e *endpoint) visitor(t *testing.T, who, era string, sse bool) *visitor {
	v := &visitor{endpoint: e, who: who, era: era, name: "visitor", sse: sse, caps: "{}", sessions: make(map[string]string), streams: make(map[string]*stream)}
	t.Cleanup(func() {
		for _, s := range v.streams {
			s.close()
		}
	})
	return v
}

// send sends a request with the visitor's token.
func (v *visitor) send(ctx context.Context, verb, path, body string, header map[string]string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, verb, v.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+v.who)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	return http.DefaultClient.Do(request)
}

// http sends a request and reads the response.
func (v *visitor) http(t *testing.T, verb, path, body string, header map[string]string) (status int, answer string, got http.Header) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	response, err := v.send(ctx, verb, path, body, header)
	if err != nil {
		t.Error(err)
		return 0, "", nil
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(data), response.Header
}

// ask sends a request to a view and returns the status and the whole response, also if it is an error. params is a JSON object
// without its braces.
func (v *visitor) ask(t *testing.T, path, method, params string) string {
	t.Helper()
	return v.askWith(t, path, method, params, nil)
}

func (v *visitor) askWith(t *testing.T, path, method, params string, header map[string]string) string {
	t.Helper()
	v.last++
	switch {
	case v.sse:
		return v.askStream(t, path, method, params)
	case v.era == modernEra:
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernEra + `","io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/clientInfo":{"name":"` + v.name + `","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + v.caps + `}`
		if params != "" {
			meta += ","
		}
		head := map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": method}
		var named struct{ Name, URI string }
		_ = json.Unmarshal([]byte("{"+params+"}"), &named) // in case of an error, the params have no name
		if name := named.Name + named.URI; name != "" && (method == "tools/call" || method == "resources/read" || method == "prompts/get") {
			head["Mcp-Name"] = name
		}
		for name, value := range header {
			head[name] = value
		}
		status, answer, _ := v.http(t, "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, meta, params), head)
		return fmt.Sprint(status, " ", answer)
	}
	session, opened := v.sessions[path]
	if !opened {
		status, answer, head := v.http(t, "POST", path, v.initialize(), nil)
		session = head.Get("Mcp-Session-Id")
		if v.sessions[path] = session; method == "initialize" || status != http.StatusOK {
			delete(v.sessions, path)
			if method == "initialize" && status == http.StatusOK {
				v.sessions[path] = session
			}
			return fmt.Sprint(status, " ", answer)
		}
		v.http(t, "POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, map[string]string{"Mcp-Session-Id": session})
	}
	head := map[string]string{"Mcp-Session-Id": session}
	for name, value := range header {
		head[name] = value
	}
	status, answer, _ := v.http(t, "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params), head)
	return fmt.Sprint(status, " ", answer)
}

func (v *visitor) initialize() string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + legacyEra + `","capabilities":` + v.caps + `,"clientInfo":{"name":"` + v.name + `","version":"1"}}}`
}

// stream is an open event stream (server-sent events).
type stream struct {
	close  func()
	status int
	mu     sync.Mutex
	lines  []string // the data of its events
	ended  chan struct{}
}

// open opens a stream, and returns when it has received the response header.
func (v *visitor) open(t *testing.T, verb, path, body string, header map[string]string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	response, err := v.send(ctx, verb, path, body, header)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &stream{status: response.StatusCode, ended: make(chan struct{})}
	s.close = sync.OnceFunc(func() {
		cancel()
		response.Body.Close()
		<-s.ended
	})
	t.Cleanup(s.close)
	go func() { // ends with close
		defer close(s.ended)
		in := bufio.NewReader(response.Body)
		for {
			line, err := in.ReadBytes('\n')
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				s.mu.Lock()
				s.lines = append(s.lines, strings.TrimSpace(string(data)))
				s.mu.Unlock()
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *stream) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// await waits for an event that contains all these texts.
func (s *stream) await(t *testing.T, texts ...string) string {
	t.Helper()
	found := ""
	mcptest.WaitFor(t, fmt.Sprint(texts), patience, func() bool {
		for _, line := range s.all() {
			has := true
			for _, text := range texts {
				has = has && strings.Contains(line, text)
			}
			if has {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

// askStream is like ask, over the HTTP+SSE transport.
func (v *visitor) askStream(t *testing.T, path, method, params string) string {
	t.Helper()
	s := v.streams[path]
	if s == nil {
		s = v.open(t, "GET", path+"/sse", "", nil)
		if s.status != http.StatusOK {
			s.close()
			status, answer, _ := v.http(t, "GET", path+"/sse", "", nil)
			return fmt.Sprint(status, " ", answer)
		}
		v.streams[path] = s
		v.sessions[path] = s.await(t, "sessionId=")
		v.http(t, "POST", v.sessions[path], v.initialize(), nil)
		answer := s.await(t, `"id":0`)
		v.http(t, "POST", v.sessions[path], `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
		if method == "initialize" {
			return "200 " + answer
		}
	}
	id := fmt.Sprintf(`"id":%d`, v.last)
	before := len(s.all())
	v.http(t, "POST", v.sessions[path], fmt.Sprintf(`{"jsonrpc":"2.0",%s,"method":%q,"params":{%s}}`, id, method, params), nil)
	s.await(t, id+",")
	said := strings.Join(s.all()[before:], "\n")
	return "200 " + strings.ReplaceAll(said, id+",", `"id":1,`)
}

// each runs a test once for each era and transport.
func each(t *testing.T, test func(t *testing.T, visit func(who string) *visitor), e *endpoint) {
	for name, how := range map[string]struct {
		era string
		sse bool
	}{"legacy": {legacyEra, false}, "modern": {modernEra, false}, "older transport": {legacyEra, true}} {
		t.Run(name, func(t *testing.T) {
			test(t, func(who string) *visitor { return e.visitor(t, who, how.era, how.sse) })
		})
	}
}

// ownFolders gives the test folders of its own for what mcpx keeps for a user.
func ownFolders(t testing.TB) {
	t.Helper()
	for _, folder := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "HOME"} {
		t.Setenv(folder, t.TempDir())
	}
}
