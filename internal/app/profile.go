package app

import (
	"log/slog"
	"slices"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
)

// Profile is a way to use mcpx. Everything in which these ways differ is a field here.
type Profile struct {
	// callLevel is the log level for the record of each call. Over stdio it is debug, because many clients store everything
	// that mcpx writes to stderr.
	callLevel slog.Level
	// oneClient means that mcpx serves one client over stdio: only the servers in its view are needed, and there are no HTTP
	// headers to pass on.
	oneClient bool
	// manyClients means that mcpx serves clients of both protocol eras, which share sessions with servers.
	manyClients bool
	// byPerson is for a single call by the user, who sees the whole result and need not confirm the call.
	byPerson bool
	// fromDisk means that a server whose catalogue is on disk starts only when something needs it, as if all servers were lazy.
	fromDisk bool
	// samples means that mcpx serves the servers of the demo, without a config file.
	samples bool
	// sealed means that clients over HTTP can go on with their sessions after a restart of mcpx.
	sealed bool
	// authServer means that mcpx runs the authorization server of the config.
	authServer bool
	// page means that there is a page, for which calls are recorded.
	page bool
	// saves means that the savings of tokens are kept in files.
	saves bool
	// measured means that calls are counted by client, and that there are metrics.
	measured bool
	// embedded means that mcpx is a part of another program, which neither edits the config file nor reads it again.
	embedded bool
	// spans means that traces are sent, if the config has a collector.
	spans bool
}

var (
	// Command is for a command that only inspects servers.
	Command = Profile{callLevel: slog.LevelDebug}
	// Once is for a command that makes one call.
	Once = Profile{callLevel: slog.LevelDebug, byPerson: true}
	// Look is for a command that shows what a model sees. Measure is for a command that counts the tokens of this.
	Look    = Profile{callLevel: slog.LevelDebug, byPerson: true, fromDisk: true}
	Measure = Profile{callLevel: slog.LevelDebug, fromDisk: true}
	Stdio   = Profile{callLevel: slog.LevelDebug, oneClient: true, saves: true, spans: true}
	Hosted  = Profile{
		manyClients: true, sealed: true, callLevel: slog.LevelInfo, authServer: true, page: true, saves: true, measured: true, spans: true,
	}
	// Desk is for the page of a user's own machine, beside the sessions over stdio.
	Desk = Profile{callLevel: slog.LevelDebug, fromDisk: true, page: true, saves: true}
	// Embedded is for a program that is not the command mcpx. It counts no savings in files.
	Embedded = Profile{embedded: true, manyClients: true, callLevel: slog.LevelDebug, authServer: true, measured: true, spans: true}
	Demo     = Profile{manyClients: true, callLevel: slog.LevelDebug, samples: true, page: true}
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
		once.ResultTokenLimit = 0      // a handle could not be used after the command has ended
		once.ExecWait = 24 * time.Hour // the command has only just started the server
		once.Confirm = conf.ConfirmNone
		once.Servers = slices.Clone(cfg.Servers)
		for i := range once.Servers {
			once.Servers[i].Confirm = conf.ConfirmNone
		}
		return &once, nil
	}
	return cfg, nil
}

// servers returns which of the given servers must be started; nil means all servers.
func (p Profile) servers(names []string) []string {
	if p.byPerson && slices.ContainsFunc(names, func(name string) bool { return name == "" || name == builtin.Name }) {
		return nil // the tools of mcpx itself read from all servers
	}
	return names
}
