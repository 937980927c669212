// Package published reads MCP registries: which servers they list, and how each server is started or reached. It starts
// nothing.
package published

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// ErrNoServer is the error of [Registry.Latest] if the registry lists no server of this name that can still be used.
var ErrNoServer = errors.New("no such server")

// Registry is an MCP registry: a service with the same API as the official registry, in version 0.1.
type Registry struct {
	URL string
}

// Server is a server as a registry lists it. The texts come from the publisher of the server, so they cannot be trusted.
type Server struct {
	Name        string // such as io.github.owner/server
	Description string
	Version     string
	Repository  struct{ URL string }
	Packages    []Package
	Remotes     []Remote

	// Deprecated is the reason why the server should no longer be used. It is empty if the server is not deprecated.
	Deprecated string `json:"-"`
}

// Package is a package from which a [Server] can be run on this machine: a package of npm or PyPI, or a container image. It also
// has the arguments and environment variables for that. A server may have several packages.
type Package struct {
	RegistryType         string
	RegistryBaseURL      string
	Identifier           string
	Version              string
	RuntimeHint          string
	RuntimeArguments     []Input
	PackageArguments     []Input
	EnvironmentVariables []Input
	Transport            struct{ Type string }
}

// Remote is an address at which the server runs.
type Remote struct {
	Type, URL string
	Headers   []Input
	Variables map[string]Input
}

// Input is a part of a command line, an environment variable, a header, or a {variable} in the value of one of these.
type Input struct {
	Type        string // of an argument: positional or named
	Name        string // the name of a header, an environment variable or a named argument
	ValueHint   string // the name of a positional argument; in older entries the value of a fixed one
	Description string
	Format      string // string, number, boolean or filepath
	// Value is a fixed text, in which only the {variables} are replaced. If Value is empty, the user gives the value.
	Value     string
	Default   string
	Choices   []string
	Variables map[string]Input

	IsRequired, IsSecret, IsFixed bool
}

// answer is a registry's answer about one version of a server.
type answer struct {
	Server Server
	Meta   struct {
		Official struct {
			Status, StatusMessage string
			IsLatest              *bool
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

// server returns the server, or nil if it was deleted, if the registry says that this is not its newest version, or if it has
// no name.
func (a *answer) server() *Server {
	official := &a.Meta.Official
	if official.Status == "deleted" || official.IsLatest != nil && !*official.IsLatest || a.Server.Name == "" {
		return nil
	}
	if official.Status == "deprecated" {
		a.Server.Deprecated = "deprecated"
		if official.StatusMessage != "" {
			a.Server.Deprecated += ": " + sanitize.Line(official.StatusMessage, 200)
		}
	}
	return &a.Server
}

// pageSize is the maximum number of servers that Find asks for.
const pageSize = 50

// Find returns the servers that the registry finds for a word; which texts it searches is up to the registry. incomplete is
// true if the registry has more such servers.
func (r Registry) Find(ctx context.Context, word string) (servers []Server, incomplete bool, err error) {
	query := url.Values{"search": {word}, "version": {"latest"}, "limit": {fmt.Sprint(pageSize)}}
	var list struct {
		Servers  []answer
		Metadata struct{ NextCursor string }
	}
	if err := r.get(ctx, "servers?"+query.Encode(), &list); err != nil {
		return nil, false, err
	}
	for i := range list.Servers {
		server := list.Servers[i].server()
		if server != nil && !slices.ContainsFunc(servers, func(other Server) bool { return other.Name == server.Name }) {
			servers = append(servers, *server)
		}
	}
	return servers, list.Metadata.NextCursor != "", nil
}

// Latest returns the newest version of the server with this name. If there is no such server, or it was deleted, the error is
// [ErrNoServer].
func (r Registry) Latest(ctx context.Context, name string) (*Server, error) {
	var found answer
	err := r.get(ctx, "servers/"+url.PathEscape(name)+"/versions/latest", &found)
	if status, ok := errors.AsType[*netguard.StatusError](err); ok && status.Code == http.StatusNotFound {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, err
	}
	if server := found.server(); server != nil && server.Name == name {
		return server, nil
	}
	return nil, ErrNoServer
}

func (r Registry) get(ctx context.Context, what string, into any) error {
	// The user has chosen the address, so it may be in the user's own network.
	web := netguard.NewClient(netguard.Reach{Loopback: true, Private: true})
	defer web.CloseIdleConnections()
	err := netguard.Get(ctx, web, strings.TrimRight(r.URL, "/")+"/v0.1/"+what, "", into)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("the registry %s: %w", r.URL, netguard.Cause(err))
	}
	return err
}
