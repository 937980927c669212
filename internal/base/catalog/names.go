package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The names under which clients see the resources and prompts of many servers. They
// depend on what the servers list, never on states: a URI must not change because a
// server is down. And they are reversible without a memory, so that they stay good after
// a restart, and in another process.

// uriScheme is the scheme of URIs that name a server: mcpx://SERVER/URI.
const uriScheme = "mcpx://"

// appScheme is the scheme of the resources that are the user interface of a tool (MCP
// Apps).
const appScheme = "ui://"

// names has which servers list a URI or a template.
type names struct {
	// indexes of servers, by URI and by template, but for those that would name a server
	resources, templates map[string][]int
	patterns             []pattern
	able                 []int // servers that offer resources at all
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
		if all := into[name]; !naming(name) && (len(all) == 0 || all[len(all)-1] != server) { // a server may list one twice
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

// taken reports whether another server lists a resource that the template makes as well.
func (n *names) taken(p pattern) bool {
	for uri, owners := range n.resources {
		if strings.HasPrefix(uri, p.prefix) && !slices.Contains(owners, p.server) && p.matches().MatchString(uri) {
			return true
		}
	}
	return false
}

// URI is the name by which clients know a resource or a template that a server lists:
// its own, unless another server has that too, or it would name a server.
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

// Link is the name by which clients can read what a result of a server links or embeds.
// That is its own URI where [Snapshot.Resource] finds the way back. An address of the web
// stays as it is, as clients read those themselves.
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

// naming reports whether a URI is of the form of withServer. Such a name is of the server
// in it, whoever lists the same.
func naming(uri string) bool {
	return strings.HasPrefix(uri, uriScheme) || strings.HasPrefix(uri, appScheme+"mcpx/")
}

// withServer is a URI that names a server. That of an app keeps its scheme, which is how
// clients know that it is one.
func withServer(server, own string) string {
	if rest, app := strings.CutPrefix(own, appScheme); app {
		return appScheme + "mcpx/" + server + "/" + rest
	}
	return uriScheme + server + "/" + own
}

// AppURI is the name by which clients know an app of the server, as the URI that it has
// itself.
func (s *Server) AppURI(own string) string {
	if !strings.HasPrefix(own, appScheme) {
		return own
	}
	return withServer(s.Name, own)
}

// URIError is the error of a URI that names no resource, or several.
type URIError struct {
	URI string
	// Candidates are names for the resources that it may be.
	Candidates []string
}

func (e *URIError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("no server lists %q, and no template makes it; mcpx://SERVER/URI names any resource of a server", e.URI)
	}
	return fmt.Sprintf("several servers may have %q; it is one of %s", e.URI, strings.Join(e.Candidates, ", "))
}

// Resource finds the server that has a resource, and the server's own name for it. A URI
// that nobody lists belongs to the server whose template makes it, or to the only server
// that has resources.
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

// Template is [Snapshot.Resource] for a template.
func (s *Snapshot) Template(uri string) (server *Server, own string, err error) {
	owners := s.names().templates[uri]
	if len(owners) == 0 {
		return s.Resource(uri)
	}
	return s.only(uri, slices.DeleteFunc(slices.Clone(owners), func(i int) bool { return i < 0 }))
}

// named reads a name of the form mcpx://SERVER/URI, or ui://mcpx/SERVER/REST.
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

// maxTemplate bounds the templates that are compiled, in bytes.
const maxTemplate = 2000

func newPattern(server int, template string) pattern {
	prefix, _, _ := strings.Cut(template, "{")
	return pattern{server, template, prefix, sync.OnceValue(func() *regexp.Regexp { return compile(template) })}
}

// nothing matches no URI.
var nothing = regexp.MustCompile(`[^\s\S]`)

// compile makes of a URI template (RFC 6570) what it makes. It is as lenient as the SDKs
// of servers: the values of expressions need not be escaped.
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

// valueOf is what an expression can become, as a regular expression.
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

// PromptName is the name by which clients know a prompt of a server. Where separator is
// empty, the prompt keeps its own.
func (s *Snapshot) PromptName(server *Server, own, separator string) string {
	if separator == "" {
		return own
	}
	name := server.Name + separator + own
	// Of the servers a and a__b one may have a prompt whose name is that of the other's.
	if found, has, ok := s.Prompt(name, separator); !ok || found.Name != server.Name || has != own {
		name = server.Name + separator + separator + own
	}
	return name
}

// Prompt finds the server that has a prompt, and the server's own name for it. A prompt
// that nobody lists belongs to the server that the name begins with.
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
