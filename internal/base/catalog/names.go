package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Clients see the resources and prompts of many servers under the names that this file makes. A name depends only on
// what servers list, never on their states: a URI must not change because a server is down. Names can be resolved
// without stored state, so they stay valid after a restart and in another process.

// uriScheme begins URIs that contain the name of a server: mcpx://SERVER/URI.
const uriScheme = "mcpx://"

// appScheme begins URIs of the user interfaces of tools (MCP Apps).
const appScheme = "ui://"

// names is an index of the resources and templates that the servers of a snapshot list. It finds the server that a URI belongs to.
type names struct {
	// resources and templates map a resource URI or a URI template to the servers that list it, as indexes in Snapshot.Servers.
	// URIs that contain the name of a server (see naming) are left out. A template that only one server lists may match a resource
	// of another server. Then -1 is added to the servers of the template, so that clients see it with the server's name (see
	// [Snapshot.URI]).
	resources, templates map[string][]int
	patterns             []pattern
	able                 []int // indexes of the servers that have resources
}

// pattern is a URI template that a server lists, prepared for matching.
type pattern struct {
	server   int
	template string
	prefix   string // the template up to its first expression
	matches  func() *regexp.Regexp
}

func newNames(servers []Server) *names {
	n := &names{resources: make(map[string][]int), templates: make(map[string][]int)}
	add := func(into map[string][]int, name string, server int) {
		if all := into[name]; !naming(name) && (len(all) == 0 || all[len(all)-1] != server) { // a server may list a name twice
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

// taken reports whether another server lists a resource that matches the template p.
func (n *names) taken(p pattern) bool {
	for uri, owners := range n.resources {
		if strings.HasPrefix(uri, p.prefix) && !slices.Contains(owners, p.server) && p.matches().MatchString(uri) {
			return true
		}
	}
	return false
}

// URI returns the client's name for a resource or template of a server. own is the server's name for it. URI returns own
// if only this server lists it and, for a template, no other server lists a resource that matches the template. Otherwise
// URI adds the server's name to own. It also does so if own has the form of URIs that contain a server's name (see naming).
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

// Link returns the client's name for a URI in a result of a server. The URI stays unchanged if the server has no
// resources, or if [Snapshot.Resource] resolves the URI to the same server. Web addresses that no server lists stay
// unchanged too, as clients can read them directly. To any other URI, Link adds the server's name.
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

// naming reports whether a URI has the form that withServer makes. Such a URI always belongs to the server that it
// names.
func naming(uri string) bool {
	return strings.HasPrefix(uri, uriScheme) || strings.HasPrefix(uri, appScheme+"mcpx/")
}

// withServer returns a URI that contains the name of the server. The URI of an app keeps its scheme ui://, by which
// clients recognize apps.
func withServer(server, own string) string {
	if rest, app := strings.CutPrefix(own, appScheme); app {
		return appScheme + "mcpx/" + server + "/" + rest
	}
	return uriScheme + server + "/" + own
}

// AppURI returns the client's name for an app (a user interface) of the server: a ui:// URI with the server's name.
// If own is not a ui:// URI, AppURI returns own.
func (s *Server) AppURI(own string) string {
	if !strings.HasPrefix(own, appScheme) {
		return own
	}
	return withServer(s.Name, own)
}

// URIError means that a URI names no resource, or may name several.
type URIError struct {
	URI string
	// Candidates has, for each resource that may be meant, a URI that names only this resource.
	Candidates []string
}

func (e *URIError) Error() string {
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("no server lists %q, and no template matches it; mcpx://SERVER/URI names any resource of a server", e.URI)
	}
	return fmt.Sprintf("several servers may have %q; use one of %s", e.URI, strings.Join(e.Candidates, ", "))
}

// Resource resolves a client's URI to the server and the server's own name for the resource. A URI that no server lists belongs to
// the server with a matching template. If no template matches either, but only one server has resources, it belongs to that server.
// If no server or several servers fit, err is a [*URIError].
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

// named resolves a URI of the form mcpx://SERVER/URI or ui://mcpx/SERVER/REST.
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

// maxTemplate bounds the length of templates that are compiled, in bytes.
const maxTemplate = 2000

func newPattern(server int, template string) pattern {
	prefix, _, _ := strings.Cut(template, "{")
	return pattern{server, template, prefix, sync.OnceValue(func() *regexp.Regexp { return compile(template) })}
}

var nothing = regexp.MustCompile(`[^\s\S]`)

// compile returns a regular expression that matches the URIs of a URI template (RFC 6570). It also accepts values that are not
// escaped, because the SDKs with which servers are written accept them too. For a template that is invalid or too long, it matches
// nothing.
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

// valueOf returns a regular expression that matches the values of a template expression.
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

// PromptName returns the client's name for a prompt of a server: the server's name, the separator and own, which is the
// server's name for the prompt. If the separator is empty, the client's name is own.
func (s *Snapshot) PromptName(server *Server, own, separator string) string {
	if separator == "" {
		return own
	}
	name := server.Name + separator + own
	// Two servers a and a__b may have prompts with the same combined name. Then one of the names gets the separator twice.
	if found, has, ok := s.Prompt(name, separator); !ok || found.Name != server.Name || has != own {
		name = server.Name + separator + separator + own
	}
	return name
}

// Prompt resolves name, the name of a prompt as a client writes it, to the server and the server's own name for the prompt. If no
// server lists the prompt, Prompt returns the server whose name and separator are the beginning of name; of several such servers,
// the one with the longest name. ok is false if there is no such server, or if nothing follows its name and separator.
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

// Unqualified removes the name of a server and a separator (two underscores, a dot, a colon or a slash) from the beginning of a
// tool's name. ok is false if the name does not begin with them, or if nothing follows.
func Unqualified(name, server string) (tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, server)
	if !ok || server == "" {
		return "", false
	}
	for _, sep := range [...]string{"__", ".", ":", "/"} {
		if tool, ok = strings.CutPrefix(rest, sep); ok && tool != "" {
			return tool, true
		}
	}
	return "", false
}
