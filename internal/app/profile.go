package app

import (
	"log/slog"
	"slices"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
)

// Profile is a way to use mcpx. All that differs between them is a field here.
type Profile struct {
	// callLevel is the log level of the line for each call. It is low over stdio, as many clients keep all that mcpx writes
	// to stderr.
	callLevel slog.Level
	// oneClient serves one client over stdio: only the servers in its view are needed, and there are no headers to pass on.
	oneClient bool
	// manyClients serves clients of both protocol eras, which share sessions with servers.
	manyClients bool
	// byPerson is for a single call by the user, who sees the whole result and need not confirm it.
	byPerson bool
	// fromDisk starts no server whose catalogue is on disk before something needs it, as if all were lazy.
	fromDisk bool
	// samples serves the servers of the demo, without a config file.
	samples bool
	// authServer runs the authorization server of the config.
	authServer bool
	// page keeps the calls of the last hour for the status page.
	page bool
	// measured counts calls by client, and provides metrics.
	measured bool
	// spans sends traces, if the config has a collector.
	spans bool
}

var (
	// Command is for a command that looks at servers.
	Command = Profile{callLevel: slog.LevelDebug}
	// Once is for a command that makes one call.
	Once = Profile{callLevel: slog.LevelDebug, byPerson: true}
	// Look is for a command that shows what a model sees, Measure for one that counts its tokens.
	Look    = Profile{callLevel: slog.LevelDebug, byPerson: true, fromDisk: true}
	Measure = Profile{callLevel: slog.LevelDebug, fromDisk: true}
	Stdio   = Profile{callLevel: slog.LevelDebug, oneClient: true, spans: true}
	Hosted  = Profile{manyClients: true, callLevel: slog.LevelInfo, authServer: true, page: true, measured: true, spans: true}
	Demo    = Profile{manyClients: true, callLevel: slog.LevelDebug, samples: true, page: true}
)

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
		once.ExecWait = 24 * time.Hour // the command has only just started the server
		once.Servers = slices.Clone(cfg.Servers)
		for i := range once.Servers {
			once.Servers[i].Confirm = conf.ConfirmNone
		}
		return &once, nil
	}
	return cfg, nil
}

// servers returns the names of the servers that are needed; none = all.
func (p Profile) servers(names []string) []string {
	if p.byPerson && slices.ContainsFunc(names, func(name string) bool { return name == "" || name == builtin.Name }) {
		return nil // the tools of mcpx itself read from all servers
	}
	return names
}
