package executor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/builtin"
	"mcpx/internal/results"
	"mcpx/internal/search"
	"mcpx/internal/tokens"
)

const (
	// An error with guesses has at most maxGuess tokens and maxGuesses names. The first guess and the servers that have the
	// tool are always named.
	maxGuess   = 40
	maxGuesses = 3
	// Without a guess, an error lists up to maxTools or maxServers names, of maxListedBytes together, as upstreams choose the
	// names.
	maxTools, maxServers = 8, 20
	maxListedBytes       = 500
	// maxName bounds the name that was not found, in runes.
	maxName = 40
	// maxSearched bounds the tools of a server that are searched by words, which takes 0.1 ms for each.
	maxSearched = 1000
	// Servers that have the tool are named if they are at most maxOwners and the tool's name has at most maxOwned bytes.
	maxOwners = 3
	maxOwned  = 200
)

// notFoundError is an unknown tool of the server on or, if on is nil, an unknown server.
type notFoundError struct {
	on    *catalog.Server
	name  string
	known []string
	// empty says why the catalogue is empty; may be empty.
	empty string
	// owners are the servers with the wanted tool, or one whose name differs only in case and separators.
	owners []owner
}

// owner is a server that has a tool.
type owner struct{ server, tool string }

func (m *notFoundError) Error() string { return m.said(maxName) }

// said is the error's text, with the name cut to that many characters.
func (m *notFoundError) said(most int) string {
	name := sanitize.Line(m.name, most)
	if m.on == nil {
		return fmt.Sprintf("no server %q", name)
	}
	return fmt.Sprintf("no tool %q on server %q", name, m.on.Name)
}

// owners returns the servers in seen, except one, that have the tool; else the server that a dotted name begins with; else the
// servers with a tool whose name differs only in case and separators. It returns none if they are too many.
func (e *Executor) owners(seen *catalog.Snapshot, tool, but string) []owner {
	wanted := sanitize.Bare(tool)
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
			if name := s.Tools[i].Name; len(name) >= len(wanted) && len(name) <= maxOwned && sanitize.Bare(name) == wanted {
				like = append(like, owner{s.Name, name})
				return
			}
		}
	}
	for i := range seen.Servers {
		look(&seen.Servers[i])
	}
	look(e.builtin.All())
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

// dotted splits a name such as "time.get_current_time" into server and tool; nil if there is no such tool.
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
	if tool, ok := has(e.builtin.All()); ok {
		return []owner{{builtin.Name, tool}}
	}
	return nil
}

// MissingServer is the failure of a call that names a tool but no server; nil if no server has the tool.
func (e *Executor) MissingServer(seen *catalog.Snapshot, tool string) *results.Failure {
	owners := e.owners(seen, tool, "")
	if len(owners) == 0 {
		return nil
	}
	violation := sanitize.Line("/server_name: is missing; "+haveIt(owners), 0)
	return results.Invalid(violation).With("did_you_mean", serversOf(owners))
}

// MissingTool is the failure of a call without a tool whose server is written "server.tool"; nil if it is not.
func (e *Executor) MissingTool(seen *catalog.Snapshot, server string) *results.Failure {
	owners := e.dotted(seen, server)
	if owners == nil {
		return nil
	}
	violation := sanitize.Line("/tool_name: is missing; "+haveIt(owners), 0)
	return results.Invalid(violation).With("did_you_mean", []string{owners[0].tool})
}

// haveIt says which servers have a tool.
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

func (m *notFoundError) failure() *results.Failure {
	f := &results.Failure{Code: results.CodeServerNotFound, Message: m.Error()}
	key, most, more := "available_servers", maxServers, "inspect without arguments lists them"
	near, owners := m.guesses(), m.owners
	meant := near
	if m.on != nil {
		f.Code = results.CodeToolNotFound
		key, most, more = "available_tools", maxTools, "inspect with server_name "+m.on.Name+" lists them"
	} else if len(owners) > 0 {
		unlikely := func(o owner) bool { return !slices.Contains(near, o.server) }
		if likely := slices.DeleteFunc(slices.Clone(owners), unlikely); len(likely) > 0 {
			owners = likely
		}
		have := serversOf(owners)
		near = slices.DeleteFunc(near, func(name string) bool { return slices.Contains(have, name) })
		meant = append(have, near...)
	}
	text := f.Code + ": " + f.Message + "."
	switch known := m.listed(most); {
	case len(near)+len(owners) > 0:
		text = m.guessed(f.Code, near, owners)
	case len(m.known) == 0:
		text += " " + cmp.Or(m.empty, "There are none.")
	case len(m.known) > len(known):
		text += fmt.Sprintf(" Available: %s and %d more (%s).", strings.Join(known, ", "), len(m.known)-len(known), more)
		f.With(key, known)
	default:
		text += " Available: " + strings.Join(known, ", ") + "."
		f.With(key, known)
	}
	f.Text = sanitize.Line(text, 0)
	if len(meant) > 0 {
		f.With("did_you_mean", meant)
	}
	if m.on != nil && len(owners) > 0 {
		f.With("servers_with_it", serversOf(owners))
	}
	return f
}

// guessed is the text with guesses and with the servers that have the tool. Over maxGuess tokens it drops guesses, then cuts the
// wrong name.
func (m *notFoundError) guessed(code string, near []string, owners []owner) string {
	most := maxName
	for {
		text := code + ": " + m.said(most) + "."
		if len(near) > 0 {
			text += " Did you mean " + strings.Join(near, " or ") + "?"
		}
		if len(owners) > 0 {
			has := haveIt(owners)
			text += " " + strings.ToUpper(has[:1]) + has[1:] + "."
		}
		switch {
		case tokens.Estimate(text) <= maxGuess || len(near) <= 1 && most <= 10:
			return text
		case len(near) > 1:
			near = near[:len(near)-1]
		default:
			most /= 2
		}
	}
}

// guesses returns names that may be meant: similarly spelled ones, and tools found by the words of the name.
func (m *notFoundError) guesses() []string {
	if m.on == nil {
		return sanitize.Nearest(m.name, m.known)
	}
	name := strings.TrimPrefix(m.name, m.on.Name+".")
	near := sanitize.Nearest(name, m.known)
	if len(m.owners) > 0 || len(m.known) > maxSearched || len(name) > maxOwned {
		return near
	}
	var found []string
	for _, hit := range search.New(catalog.NewSnapshot([]catalog.Server{*m.on})).Search(name, search.Options{Limit: maxGuesses}) {
		if len(hit.Tool) <= maxOwned {
			found = append(found, hit.Tool)
		}
	}
	if len(found) == 0 || len(near) > 0 && slices.Contains(near, found[0]) {
		return near
	}
	if len(near) > 0 { // the first of each are the best
		found = append([]string{near[0], found[0]}, append(near[1:], found[1:]...)...)
	}
	return found[:min(maxGuesses, len(found))]
}

// listed returns the known names nearest to the wanted one, within the bounds.
func (m *notFoundError) listed(most int) []string {
	names := sanitize.Closest(m.name, m.known, most)
	size := 0
	for i, name := range names {
		if size += len(name); size > maxListedBytes {
			return names[:i]
		}
	}
	return names
}
