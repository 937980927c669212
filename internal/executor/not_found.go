package executor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/results"
	"mcpx/internal/search"
	"mcpx/internal/tokens"
)

const (
	// An error that suggests names is shortened to maxGuess tokens if that is possible: it always keeps the first suggestion,
	// the servers that have the tool, and the beginning of the wrong name. It suggests at most maxGuesses names.
	maxGuess   = 40
	maxGuesses = 3
	// An error without suggestions lists at most maxTools tools or maxServers servers. The names have at most maxListedBytes in
	// total, because a server may choose long names.
	maxTools, maxServers = 8, 20
	maxListedBytes       = 500
	// maxName is the maximum length, in characters, of the name that was not found; a longer one is cut.
	maxName = 40
	// If a server has more than maxSearched tools, mcpx does not search them for the words of a wrong name, because the search
	// takes 0.1 ms per tool.
	maxSearched = 1000
	// Servers that have the tool are named only if there are at most maxOwners of them and the tool's name has at most maxOwned
	// bytes.
	maxOwners = 3
	maxOwned  = 200
)

// notFoundError means that a server has no tool with this name. If server is nil, it means that there is no server with this
// name.
type notFoundError struct {
	server *catalog.Server
	name   string
	known  []string
	// empty says why the catalogue has no servers ([catalog.Snapshot.Empty]). "" means that it has servers, or that no reason
	// is known.
	empty string
	// owners are the servers that the caller may have meant, each with the tool (see [Executor.owners]).
	owners []owner
	// inTurn runs the search for the words of the name, or does not run it if too many searches wait. If inTurn is nil, the search
	// runs at once.
	inTurn func(search func())
}

// owner is a server that the caller may have meant, and its tool with the wanted name or a similar name.
type owner struct{ server, tool string }

func (m *notFoundError) Error() string { return m.said(maxName) }

// said returns the text of the error, with the name cut to limit characters.
func (m *notFoundError) said(limit int) string {
	name := sanitize.Line(m.name, limit)
	if m.server == nil {
		return fmt.Sprintf("no server %q", name)
	}
	return fmt.Sprintf("no tool %q on server %q", name, m.server.Name)
}

// owners returns the servers that have the tool, but only servers that the caller of r sees. If there are none, owners reads the
// wanted name as server.tool. If there is no such tool either, it returns the servers with a tool whose name differs from the
// wanted name only in case and separators. It leaves out the server whose name is the parameter except. It returns nil if there are
// more than maxOwners servers, or if the wanted name is longer than maxOwned bytes.
func (e *Executor) owners(r *Request, tool, except string) []owner {
	wanted := sanitize.Bare(tool)
	if wanted == "" || len(tool) > maxOwned {
		return nil
	}
	var exact, like []owner
	look := func(s *catalog.Server) {
		if s.Name == except {
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
	for i := range r.Catalogue.Servers {
		look(&r.Catalogue.Servers[i])
	}
	look(e.own(r.Client, r.Scope, r.Catalogue))
	if len(exact) == 0 {
		exact = slices.DeleteFunc(e.qualified(r, tool), func(o owner) bool { return o.server == except })
		if len(exact) == 0 {
			exact = like
		}
	}
	if len(exact) > maxOwners {
		return nil
	}
	return exact
}

// qualified splits a name such as "time.get_current_time" into server and tool. If the name can be split in several ways,
// qualified returns all of them. It returns nil if the caller of r sees no such tool.
func (e *Executor) qualified(r *Request, name string) (readings []owner) {
	if len(name) > maxOwned {
		return nil
	}
	look := func(s *catalog.Server) {
		if tool, ok := catalog.Unqualified(name, s.Name); ok {
			if _, ok = s.Tool(tool); ok {
				readings = append(readings, owner{s.Name, tool})
			}
		}
	}
	for i := range r.Catalogue.Servers {
		look(&r.Catalogue.Servers[i])
	}
	look(e.own(r.Client, r.Scope, r.Catalogue))
	return readings
}

// Qualified splits a name that consists of a server's name and a tool's name, as in "time.get_current_time" or
// "time__get_current_time". ok is true if the caller of r sees exactly one tool that the name can mean.
func (e *Executor) Qualified(r *Request, name string) (server, tool string, ok bool) {
	readings := e.qualified(r, name)
	if len(readings) != 1 {
		return "", "", false
	}
	return readings[0].server, readings[0].tool, true
}

// MissingServer returns the failure of a call that names a tool, r.Tool, but no server. argument is the name of the argument that
// should have named the server. It returns nil if no server has the tool.
func (e *Executor) MissingServer(r *Request, argument string) *results.Failure {
	owners := e.owners(r, r.Tool, "")
	if len(owners) == 0 {
		return nil
	}
	violation := sanitize.Line("/"+argument+": is missing; "+haveIt(owners), 0)
	return results.Invalid(violation).With("did_you_mean", serversOf(owners))
}

// haveIt returns a sentence that says which servers have a tool.
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
	if m.server != nil {
		f.Code = results.CodeToolNotFound
		key, most, more = "available_tools", maxTools, "inspect with server_name "+m.server.Name+" lists them"
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
	if m.server != nil && len(owners) > 0 {
		f.With("servers_with_it", serversOf(owners))
	}
	return f
}

// guessed returns the text with the suggestions and the servers that have the tool. If it is longer than maxGuess tokens,
// guessed leaves out suggestions, and then cuts the name that was not found.
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

// guesses returns the names that the caller may have meant: known names with a similar spelling. For the name of a tool that no
// other server has, it also returns tools that a search for the words of the name finds.
func (m *notFoundError) guesses() []string {
	if m.server == nil {
		return sanitize.Nearest(m.name, m.known)
	}
	name := strings.TrimPrefix(m.name, m.server.Name+".")
	near := sanitize.Nearest(name, m.known)
	if len(m.owners) > 0 || len(m.known) > maxSearched || len(name) > maxOwned {
		return near
	}
	var found []string
	look := func() {
		for _, hit := range search.New(catalog.NewSnapshot([]catalog.Server{*m.server})).Search(name, search.Options{Limit: maxGuesses}) {
			if len(hit.Tool) <= maxOwned {
				found = append(found, hit.Tool)
			}
		}
	}
	if m.inTurn == nil {
		look()
	} else {
		m.inTurn(look)
	}
	if len(found) == 0 || len(near) > 0 && slices.Contains(near, found[0]) {
		return near
	}
	if len(near) == 0 {
		return found
	}
	guesses := []string{near[0], found[0]} // the first of each list is the best
	for _, name := range slices.Concat(near[1:], found[1:]) {
		if len(guesses) < maxGuesses && !slices.Contains(guesses, name) {
			guesses = append(guesses, name)
		}
	}
	return guesses
}

// listed returns the known names that are nearest to the wanted name, the nearest first. There are at most limit names, with at
// most maxListedBytes together.
func (m *notFoundError) listed(limit int) []string {
	names := sanitize.Closest(m.name, m.known, limit)
	size := 0
	for i, name := range names {
		if size += len(name); size > maxListedBytes {
			return names[:i]
		}
	}
	return names
}
