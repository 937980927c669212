package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer executes a request and returns its answer.
func (s *server) answer(c *call) answer {
	if slices.Contains(s.spec.FailMethods, c.method) {
		return fails(-32603, "told to fail")
	}
	if c.modern {
		if a, bad := s.checkModern(c); bad {
			return a
		}
	} else if a, bad := s.checkLegacy(c); bad {
		return a
	}
	if raw, ok := s.spec.MethodResults[c.method]; ok {
		return result(string(oneLine(raw)))
	}
	var a answer
	switch {
	case c.method == "initialize" && !c.modern:
		a = s.initialize(c)
	case c.method == "ping" && !c.modern:
		a = result(`{}`)
	case c.method == "logging/setLevel" && !c.modern && !s.spec.NoLogging:
		a = result(`{}`) // the level is ignored: the tool notify sends messages of any level
	case c.method == "server/discover" && c.modern:
		a = s.discover(c)
	case c.method == "subscriptions/listen" && c.modern:
		a = s.listen(c)
	case c.method == "tools/list":
		a = s.list(c)
	case c.method == "tools/call":
		a = s.callTool(c)
	default:
		var known bool
		if a, known = s.offer(c); !known {
			return s.unknown(c)
		}
	}
	if c.modern {
		a.result = complete(a.result)
	}
	return a
}

// unknown returns the answer to a method that the fake does not know.
func (s *server) unknown(c *call) answer {
	if c.method == "server/discover" && s.spec.ExitOnDiscover {
		s.leave(s.spec.ExitCode)
		return answer{silent: true}
	}
	if s.spec.SilentUnknown {
		<-c.ctx.Done()
		return answer{silent: true}
	}
	return fails(-32601, "Method not found: "+c.method)
}

// checkModern refuses a request of the modern era if a required member is missing, or if its protocol version is another one
// than ModernVersion.
func (s *server) checkModern(c *call) (answer, bool) {
	meta := c.params.Meta
	switch {
	case meta.Version == "" && c.method == "initialize":
		return fails(-32601, "Method not found: initialize"), true
	case meta.Version == "":
		return fails(-32602, "missing _meta field io.modelcontextprotocol/protocolVersion"), true
	case meta.Version != ModernVersion:
		a := fails(-32022, "Unsupported protocol version")
		a.err.data = `{"supported":["` + ModernVersion + `"],"requested":` + quote(meta.Version) + `}`
		return a, true
	case meta.Capabilities == nil:
		return fails(-32602, "missing _meta field io.modelcontextprotocol/clientCapabilities"), true
	}
	return answer{}, false
}

// checkLegacy refuses a tools/list or tools/call that comes before the handshake is complete.
func (s *server) checkLegacy(c *call) (answer, bool) {
	if c.method != "tools/list" && c.method != "tools/call" {
		return answer{}, false
	}
	c.ses.mu.Lock()
	defer c.ses.mu.Unlock()
	if !c.ses.ready {
		return fails(-32600, "Received request before initialization was complete"), true
	}
	return answer{}, false
}

// complete adds the member resultType, which modern results need, unless it is the first member.
func complete(m message) message {
	if len(m.head) == 0 || m.head[0] != '{' || strings.HasPrefix(string(m.head), `{"resultType"`) {
		return m
	}
	sep := ","
	if rest := strings.TrimSpace(string(m.head[1:min(len(m.head), 64)])); strings.HasPrefix(rest, "}") {
		sep = ""
	}
	m.head = append([]byte(`{"resultType":"complete"`+sep), m.head[1:]...)
	return m
}

func (s *server) identity() string {
	return `{"name":` + quote(s.spec.name()) + `,"version":"1.0.0"}`
}

func (s *server) instructions() string {
	if s.spec.Instructions == "" {
		return ""
	}
	return `,"instructions":` + quote(s.spec.Instructions)
}

func (s *server) capabilities(modern bool) string {
	all := `{"tools":{"listChanged":true}`
	if !s.spec.NoLogging {
		all += `,"logging":{}`
	}
	return all + s.offers(modern) + `}`
}

func (s *server) initialize(c *call) answer {
	if !c.pause(s.spec.InitDelay) {
		return answer{silent: true}
	}
	_, elicits := c.params.Capabilities["elicitation"]
	c.ses.mu.Lock()
	c.ses.elicits = elicits
	c.ses.mu.Unlock()
	return result(`{"protocolVersion":` + quote(s.spec.version()) + `,"capabilities":` + s.capabilities(false) +
		`,"serverInfo":` + s.identity() + s.instructions() + `}`)
}

func (s *server) discover(c *call) answer {
	if !c.pause(s.spec.InitDelay) {
		return answer{silent: true}
	}
	versions := `"` + ModernVersion + `"`
	if s.spec.legacy() {
		versions += `,` + quote(s.spec.version())
	}
	return result(`{"supportedVersions":[` + versions + `],"capabilities":` + s.capabilities(true) + s.instructions() +
		`,"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":` + s.identity() + `}}`)
}

// listen keeps a subscription open until the client ends it.
func (s *server) listen(c *call) answer {
	granted := map[string]json.RawMessage{}
	for key, value := range c.params.Notifications {
		if key == "resourceSubscriptions" && s.spec.SubscribeEra == EraLegacy {
			continue
		}
		if key == "toolsListChanged" && string(value) == "true" || key != "toolsListChanged" && s.offers(true) != "" {
			granted[key] = value
		}
	}
	honoured, _ := json.Marshal(granted) // cannot fail: the values are raw JSON
	tag := `"io.modelcontextprotocol/subscriptionId":` + c.id
	ack := notification("notifications/subscriptions/acknowledged", `{"_meta":{`+tag+`},"notifications":`+string(honoured)+`}`)
	if err := c.note(ack); err != nil {
		return answer{silent: true}
	}
	s.mu.Lock()
	s.listens[c] = struct{}{}
	s.mu.Unlock()
	s.storm()
	<-c.ctx.Done()
	s.mu.Lock()
	delete(s.listens, c)
	s.mu.Unlock()
	return answer{silent: true}
}

// offer has the tools of a fake: their raw definitions and their names.
type offer struct {
	defs  []json.RawMessage
	names map[string]bool
}

// definitions returns the current tools.
func (s *server) definitions() (*offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := s.tools
	if raw == nil && s.spec.ToolsFile != "" {
		s.offered = nil // the file may have changed
		if data, err := os.ReadFile(s.spec.ToolsFile); err == nil {
			raw = data
		}
	}
	if s.offered != nil {
		return s.offered, nil
	}
	if raw == nil {
		raw = s.spec.Tools
	}
	if raw == nil {
		raw = DefaultTools()
	}
	o := &offer{names: map[string]bool{}}
	if err := json.Unmarshal(raw, &o.defs); err != nil {
		return nil, fmt.Errorf("reading the tools of the fake: %w", err)
	}
	for i := range s.spec.ExtraTools {
		o.defs = append(o.defs, json.RawMessage(fmt.Sprintf(`{"name":"extra_%04d","description":"Does extra thing %d.",`+
			`"inputSchema":{"type":"object","properties":{"key":{"type":"string"},"count":{"type":"integer"}},"required":["key"]}}`, i, i)))
	}
	if s.spec.OddTools {
		for _, odd := range OddTools() {
			o.defs = append(o.defs, odd.Raw)
		}
	}
	for _, d := range o.defs {
		var def struct{ Name string }
		if json.Unmarshal(d, &def) == nil && def.Name != "" {
			o.names[def.Name] = true
		}
	}
	s.offered = o
	return o, nil
}

// list answers tools/list, with several pages if the spec says so.
func (s *server) list(c *call) answer {
	if !c.pause(s.spec.ListDelay) {
		return answer{silent: true}
	}
	offered, err := s.definitions()
	if err != nil {
		return fails(-32603, err.Error())
	}
	defs, next := offered.defs, ""
	switch {
	case s.spec.CursorLoop:
		next = "again"
	case s.spec.EndlessPages:
		n, _ := strconv.Atoi(c.params.Cursor)
		defs = []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"name":"endless_%06d","inputSchema":{"type":"object"}}`, n))}
		next = strconv.Itoa(n + 1)
	case s.spec.Pages > 1:
		page := 0
		if c.params.Cursor != "" {
			if _, err := fmt.Sscanf(c.params.Cursor, "page-%d", &page); err != nil || page < 1 || page >= s.spec.Pages {
				return fails(-32602, "Invalid cursor")
			}
		}
		defs = defs[len(defs)*page/s.spec.Pages : len(defs)*(page+1)/s.spec.Pages]
		if page+1 < s.spec.Pages {
			next = "page-" + strconv.Itoa(page+1)
		}
	}
	var b strings.Builder
	b.WriteString(`{"tools":[`)
	for i, d := range defs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(oneLine(d))
	}
	b.WriteByte(']')
	if next != "" {
		b.WriteString(`,"nextCursor":` + quote(next))
	}
	if c.modern {
		b.WriteString(`,"ttlMs":0,"cacheScope":"public"`)
	}
	b.WriteByte('}')
	return result(b.String())
}

// storm starts sending list_changed notifications, if the spec says so and they have not been started yet.
func (s *server) storm() {
	if s.spec.ListChangedStorm <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storming || s.ctx.Err() != nil {
		return
	}
	s.storming = true
	s.wg.Go(func() {
		paced(s.spec.ListChangedStorm, s.ctx.Done(), func(int) error {
			s.notify("notifications/tools/list_changed", `{}`)
			return nil
		})
	})
}

// progressStorm sends progress notifications for the call until the returned function is called. That function waits
// until the last notification is written.
func (s *server) progressStorm(c *call) (stop func()) {
	token := c.params.Meta.ProgressToken
	if s.spec.ProgressStorm <= 0 || len(token) == 0 || c.method != "tools/call" {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		paced(s.spec.ProgressStorm, quit, func(n int) error { return c.note(progress(token, float64(n), "")) })
	}()
	return func() { close(quit); <-done }
}

// paced calls f this many times per second until quit is closed or f fails. If the clock is too coarse for that rate,
// it calls f several times in a row.
func paced(perSecond int, quit <-chan struct{}, f func(n int) error) {
	ticker := time.NewTicker(max(time.Second/time.Duration(perSecond), time.Millisecond))
	defer ticker.Stop()
	start, sent := time.Now(), 0
	for {
		due := int(time.Since(start).Seconds()*float64(perSecond)) + 1
		for ; sent < due; sent++ {
			select {
			case <-quit:
				return
			default:
			}
			if f(sent+1) != nil {
				return
			}
		}
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
	}
}
