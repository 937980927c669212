package app

import (
	"log/slog"
	"slices"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
)

// Profile is a use of mcpx. All that differs between the uses is a field here.
type Profile struct {
	// callLevel is the level at which each call is a line of the log. Many clients over stdio
	// keep all that mcpx writes to stderr.
	callLevel slog.Level
	// oneClient serves one client over stdio. It needs no server that its view does not show,
	// and sends no headers that servers could get.
	oneClient bool
	// byPerson is for one call that a person makes and sees.
	byPerson bool
	// samples serves the servers of the demo. There is no config file.
	samples bool
	// authServer runs the authorization server of the config.
	authServer bool
	// page gathers the calls of the last hour for the status page.
	page bool
	// measured counts clients, and makes the metrics of requests and sessions.
	measured bool
	// spans sends the traces that the config asks for.
	spans bool
}

// The uses of mcpx.
var (
	// Command is for a command that looks at servers.
	Command = Profile{callLevel: slog.LevelDebug}
	// Once is for a command that makes one call.
	Once   = Profile{callLevel: slog.LevelDebug, byPerson: true}
	Stdio  = Profile{callLevel: slog.LevelDebug, oneClient: true, spans: true}
	Hosted = Profile{callLevel: slog.LevelInfo, authServer: true, page: true, measured: true, spans: true}
	Demo   = Profile{callLevel: slog.LevelDebug, samples: true, page: true}
)

// config is the config that an App of the profile is made of.
func (p Profile) config(cfg *config.Config) (*config.Config, error) {
	switch {
	case p.samples:
		sample, err := config.Parse("demo", []byte(`{"mcpServers":{}}`), config.Options{})
		if err != nil {
			return nil, err
		}
		sample.Warnings = nil // the warning that no servers are defined
		return sample, nil
	case p.byPerson:
		once := *cfg
		once.ResultTokenLimit = 0      // no handle outlives the command
		once.ExecWait = 24 * time.Hour // the command has just started the server
		once.Servers = slices.Clone(cfg.Servers)
		for i := range once.Servers {
			once.Servers[i].Confirm = conf.ConfirmNone
		}
		return &once, nil
	}
	return cfg, nil
}

// servers are the names of the servers that are needed; none = all.
func (p Profile) servers(names []string) []string {
	if p.byPerson && slices.ContainsFunc(names, func(name string) bool { return name == "" || name == builtin.Name }) {
		return nil // the tools of mcpx itself read from all servers
	}
	return names
}
