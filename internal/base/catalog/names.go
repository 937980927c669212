package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Clients see the resources and prompts of many servers under these names. The names depend on what servers list,
// never on states: a URI must not change because a server is down. They can be resolved without stored state, so they
// stay valid after a restart and in another process.

// uriScheme is the scheme of URIs that name a server: mcpx://SERVER/URI.
const uriScheme = "mcpx://"

// appScheme is the scheme of user interfaces of tools (MCP Apps).
const appScheme = "ui://"

// names indexes which servers list a URI or a template.
type names struct {
	// Indexes of servers by URI and by template, without names that contain a server.
	resources, templates map[string][]int
	patterns             []pattern
	able                 []int // servers that offer resources
}

// pattern is a URI template of a server.
type pattern struct {
	server   int
	template string
	prefix   string // before the first expression
	matches  func() *regexp.Regexp
}

func newNames(servers []Server) *names {
	n := &names{resources: make(map[string][]int), templates: make(map[string][]int)}
	add := func(into map[string][]int, name string, server int) {
		if all := into[name]; !naming(name) && (len(all) == 0 || all[len(all)-1] != server) { // a server may list it twice
			into[name] = append(all, server)
		}
	}
	for i := range servers {
		s := &servers[i]
		if s.Offers.Resources {
			n.able = append(n.able, i)
		}
		for _, item := range s.Items.Of(Resources) {
			add(n.resources, item.Name, i)
		}
		for _, item := range s.Items.Of(ResourceTemplates) {
			add(n.templates, item.Name, i)
			n.patterns = append(n.patterns, newPattern(i, item.Name))
		}
	}
	for _, p := range n.patterns {
		if len(n.templates[p.template]) == 1 && n.taken(p) {
			n.templates[p.template] = append(n.templates[p.template], -1)
		}
	}
	return n
}

// taken reports whether another server lists a resource that matches the template.
func (n *names) taken(p pattern) bool {
	for uri, owners := range n.resources {
		if strings.HasPrefix(uri, p.prefix) && !slices.Contains(owners, p.server) && p.matches().MatchString(uri) {
			return true
		}
	}
	return false
}

// URI is the client's name for a resource or template of a server: the server's own name, unless another server has
// it too, or it would name a server.
func (s *Snapshot) URI(kind Kind, server *Server, own string) string {
	owners := s.names().resources[own]
	if kind == ResourceTemplates {
		owners = s.names().templates[own]
	}
	if len(owners) != 1 {
		return withServer(server.Name, own)
	}
	return own
}

// Link is the client's name for a URI in a result of a server. It is the own URI if [Snapshot.Resource] resolves it
// to the same server. Web addresses stay unchanged, as clients can read them directly.
func (s *Snapshot) Link(server *Server, own string) string {
	if !server.Offers.Resources {
		return own
	}
	found, name, err := s.Resource(own)
	if err == nil && found.Name == server.Name && name == own {
		return own
	}
	if len(s.names().resources[own]) == 0 && (strings.HasPrefix(own, "https://") || strings.HasPrefix(own, "http://")) {
		return own
	}
	return withServer(server.Name, own)
}

// naming reports whether a URI has the form of withServer. Such a name always belongs to the server in it.
func naming(uri string) bool {
	return strings.HasPrefix(uri, uriScheme) || strings.HasPrefix(uri, appScheme+"mcpx/")
}

// withServer makes a URI that names a server. The URI of an app keeps its scheme, by which clients recognize apps.
func withServer(server, own string) string {
	if rest, app := strings.CutPrefix(own, appScheme); app {
		return appScheme + "mcpx/" + server + "/" + rest
	}
	return uriScheme + server + "/" + own
}

// AppURI is the client's name for an app of the server.
func (s *Server) AppURI(own string) string {
	if !strings.HasPrefix(own, appScheme) {
		return own
	}
	return withServer(s.Name, own)
}

// URIError means that a URI names no resource, or several.
type URIError struct {
	URI string
	// Candidates are unambiguous names for the possible resources.
	Candidates []string
}

func (e *URIError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("no server lists %q, and no template matches it; mcpx://SERVER/URI names any resource of a server", e.URI)
	}
	return fmt.Sprintf("several servers may have %q; use one of %s", e.URI, strings.Join(e.Candidates, ", "))
}

// Resource resolves a client's URI to the server and its own name for the resource. A URI that no server lists
// belongs to the server with a matching template, or to the only server that has resources.
func (s *Snapshot) Resource(uri string) (server *Server, own string, err error) {
	if server, own, ok := s.named(uri); ok {
		return server, own, nil
	}
	n := s.names()
	owners := n.resources[uri]
	if len(owners) == 0 {
		for _, p := range n.patterns {
			if strings.HasPrefix(uri, p.prefix) && !slices.Contains(owners, p.server) && p.matches().MatchString(uri) {
				owners = append(owners, p.server)
			}
		}
	}
	if len(owners) == 0 && len(n.able) == 1 {
		owners = n.able
	}
	return s.only(uri, owners)
}

func (s *Snapshot) Template(uri string) (server *Server, own string, err error) {
	owners := s.names().templates[uri]
	if len(owners) == 0 {
		return s.Resource(uri)
	}
	return s.only(uri, slices.DeleteFunc(slices.Clone(owners), func(i int) bool { return i < 0 }))
}

// named resolves a name of the form mcpx://SERVER/URI, or ui://mcpx/SERVER/REST.
func (s *Snapshot) named(uri string) (server *Server, own string, ok bool) {
	rest, app := strings.CutPrefix(uri, appScheme+"mcpx/")
	if ok = app; !app {
		rest, ok = strings.CutPrefix(uri, uriScheme)
	}
	name, own, slash := strings.Cut(rest, "/")
	if !ok || !slash || own == "" {
		return nil, "", false
	}
	if app {
		own = appScheme + own
	}
	server, ok = s.Server(name)
	return server, own, ok && !server.ToolsOnly
}

func (s *Snapshot) only(uri string, owners []int) (*Server, string, error) {
	if len(owners) == 1 {
		return &s.Servers[owners[0]], uri, nil
	}
	e := &URIError{URI: uri}
	for _, i := range owners {
		e.Candidates = append(e.Candidates, withServer(s.Servers[i].Name, uri))
	}
	return nil, "", e
}

// maxTemplate bounds the length of compiled templates, in bytes.
const maxTemplate = 2000

func newPattern(server int, template string) pattern {
	prefix, _, _ := strings.Cut(template, "{")
	return pattern{server, template, prefix, sync.OnceValue(func() *regexp.Regexp { return compile(template) })}
}

var nothing = regexp.MustCompile(`[^\s\S]`)

// compile makes a regular expression for the URIs of a URI template (RFC 6570). It is as lenient as the SDKs of
// servers: the values need not be escaped.
func compile(template string) *regexp.Regexp {
	if len(template) > maxTemplate {
		return nothing
	}
	var out strings.Builder
	out.WriteString(`^(?s:`)
	for rest := template; rest != ""; {
		literal, after, ok := strings.Cut(rest, "{")
		out.WriteString(regexp.QuoteMeta(literal))
		if !ok {
			break
		}
		expression, behind, ok := strings.Cut(after, "}")
		if !ok || expression == "" {
			return nothing
		}
		out.WriteString(valueOf(expression))
		rest = behind
	}
	out.WriteString(`)$`)
	matches, err := regexp.Compile(out.String())
	if err != nil {
		return nothing
	}
	return matches
}

// valueOf is the regular expression for the values of an expression.
func valueOf(expression string) string {
	switch expression[0] {
	case '+':
		return `.+`
	case '#', '/', ';', '.':
		return `(?:` + regexp.QuoteMeta(expression[:1]) + `.*)?`
	case '?', '&':
		return `(?:[?&].*)?`
	}
	return `[^/?#]+`
}

// PromptName is the client's name for a prompt of a server. With an empty separator it is the own name.
func (s *Snapshot) PromptName(server *Server, own, separator string) string {
	if separator == "" {
		return own
	}
	name := server.Name + separator + own
	// Servers a and a__b may have prompts with the same combined name.
	if found, has, ok := s.Prompt(name, separator); !ok || found.Name != server.Name || has != own {
		name = server.Name + separator + separator + own
	}
	return name
}

// Prompt resolves a client's name to the server and its own name for the prompt. A prompt that no server lists
// belongs to the server that the name begins with.
func (s *Snapshot) Prompt(name, separator string) (server *Server, own string, ok bool) {
	for i := range s.Servers {
		one := &s.Servers[i]
		rest, begins := strings.CutPrefix(name, one.Name+separator)
		if separator == "" {
			rest, begins = name, true
		}
		if !begins || one.ToolsOnly {
			continue
		}
		lists := func(own string) bool {
			return slices.ContainsFunc(one.Items.Of(Prompts), func(item Item) bool { return item.Name == own })
		}
		if separator != "" && !lists(rest) && lists(strings.TrimPrefix(rest, separator)) {
			rest = strings.TrimPrefix(rest, separator)
		}
		if lists(rest) {
			return one, rest, true
		}
		if server == nil || len(one.Name) > len(server.Name) {
			server, own = one, rest
		}
	}
	return server, own, server != nil && own != ""
}
