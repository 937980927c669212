package executor

import (
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/catalog"
	"mcpx/internal/plain"
)

const (
	// maxListed bounds the number of names in an error, maxListedBytes their length
	// together: upstreams choose the names.
	maxListed      = 50
	maxListedBytes = 4000
	// maxName bounds the name that was not found, in runes.
	maxName = 100
	// An error names the servers that have a tool if those are at most maxOwners, and
	// the name of the tool is at most maxOwned bytes.
	maxOwners = 3
	maxOwned  = 200
)

// notFoundError is an unknown server or tool.
type notFoundError struct {
	what, server, name string
	known              []string
	// owners are the servers that have the wanted tool, or one whose name differs
	// only in case and separators.
	owners []owner
}

// owner is a server that has a tool.
type owner struct{ server, tool string }

func (m *notFoundError) Error() string { return fmt.Sprintf("no %s %q", m.what, m.name) }

// owners are the servers in seen, except one, that have a tool of that name, else
// the server that a dotted name begins with, else those whose tool differs only in case
// and separators; none if they are many.
func (e *Executor) owners(seen *catalog.Snapshot, tool, but string) []owner {
	wanted := plain.Bare(tool)
	if wanted == "" || len(tool) > maxOwned {
		return nil
	}
	var exact, like []owner
	look := func(s *catalog.Server) {
		if s.Name == but {
			return
		}
		if _, ok := s.Tool(tool); ok {
			exact = append(exact, owner{s.Name, tool})
			return
		}
		for i := range s.Tools {
			if name := s.Tools[i].Name; len(name) >= len(wanted) && len(name) <= maxOwned && plain.Bare(name) == wanted {
				like = append(like, owner{s.Name, name})
				return
			}
		}
	}
	for i := range seen.Servers {
		look(&seen.Servers[i])
	}
	look(e.builtin)
	if len(exact) == 0 {
		if exact = e.dotted(seen, tool); exact == nil || exact[0].server == but {
			exact = like
		}
	}
	if len(exact) > maxOwners {
		return nil
	}
	return exact
}

// dotted is the server and the tool of a name such as "time.get_current_time", nil if
// there is no such tool.
func (e *Executor) dotted(seen *catalog.Snapshot, name string) []owner {
	if len(name) > maxOwned {
		return nil
	}
	has := func(s *catalog.Server) (tool string, ok bool) {
		if tool, ok = strings.CutPrefix(name, s.Name+"."); ok {
			_, ok = s.Tool(tool)
		}
		return tool, ok
	}
	for i := range seen.Servers {
		if tool, ok := has(&seen.Servers[i]); ok {
			return []owner{{seen.Servers[i].Name, tool}}
		}
	}
	if tool, ok := has(e.builtin); ok {
		return []owner{{e.builtin.Name, tool}}
	}
	return nil
}

// MissingServer is the failure of a call with a tool and no server, or nil if no
// server has the tool.
func (e *Executor) MissingServer(seen *catalog.Snapshot, tool string) *Failure {
	owners := e.owners(seen, tool, "")
	if len(owners) == 0 {
		return nil
	}
	violation := plain.Line("/server_name: is missing; "+haveIt(owners), 0)
	return Invalid(violation).With("did_you_mean", serversOf(owners))
}

// MissingTool is the failure of a call with no tool and a server written as
// "server.tool", or nil if the server is written otherwise.
func (e *Executor) MissingTool(seen *catalog.Snapshot, server string) *Failure {
	owners := e.dotted(seen, server)
	if owners == nil {
		return nil
	}
	violation := plain.Line("/tool_name: is missing; "+haveIt(owners), 0)
	return Invalid(violation).With("did_you_mean", []string{owners[0].tool})
}

// haveIt names the servers that have a tool.
func haveIt(owners []owner) string {
	if len(owners) == 1 {
		return "server " + owners[0].server + " has " + owners[0].tool
	}
	return "servers " + strings.Join(serversOf(owners), ", ") + " have " + owners[0].tool
}

func serversOf(owners []owner) []string {
	names := make([]string, len(owners))
	for i, o := range owners {
		names[i] = o.server
	}
	return names
}

func (m *notFoundError) failure() *Failure {
	near := plain.Nearest(strings.TrimPrefix(m.name, m.server+"."), m.known)
	name := plain.Line(m.name, maxName)
	f := &Failure{Code: CodeServerNotFound, Message: fmt.Sprintf("no server %q", name)}
	key, more := "available_servers", "inspect without arguments lists them"
	meant, owners := near, m.owners
	if m.what == "tool" {
		f.Code, f.Message = CodeToolNotFound, fmt.Sprintf("no tool %q on server %q", name, m.server)
		key, more = "available_tools", "inspect with server_name "+m.server+" lists them"
	} else if len(owners) > 0 {
		if likely := slices.DeleteFunc(slices.Clone(owners), func(o owner) bool { return !slices.Contains(near, o.server) }); len(likely) > 0 {
			owners = likely
		}
		have := serversOf(owners)
		near = slices.DeleteFunc(near, func(name string) bool { return slices.Contains(have, name) })
		meant = append(have, near...)
	}
	known := m.listed()
	text := f.Code + ": " + f.Message + "."
	if len(near) > 0 {
		text += " Did you mean " + strings.Join(near, " or ") + "?"
	}
	switch {
	case len(owners) > 0:
		what := haveIt(owners)
		text += " " + strings.ToUpper(what[:1]) + what[1:] + "." // and no list of other names
	case len(m.known) == 0:
		text += " There are none."
	case len(m.known) > len(known):
		text += fmt.Sprintf(" Available: %s and %d more (%s).", strings.Join(known, ", "), len(m.known)-len(known), more)
	default:
		text += " Available: " + strings.Join(known, ", ") + "."
	}
	f.Text = plain.Line(text, 0)
	f.With(key, known)
	if len(meant) > 0 {
		f.With("did_you_mean", meant)
	}
	if m.what == "tool" && len(owners) > 0 {
		f.With("servers_with_it", serversOf(owners))
	}
	return f
}

// listed are the first known names, within the bounds.
func (m *notFoundError) listed() []string {
	known := []string{}
	size := 0
	for _, name := range m.known[:min(len(m.known), maxListed)] {
		if size += len(name); size > maxListedBytes {
			break
		}
		known = append(known, name)
	}
	return known
}
