package app

import (
	"log/slog"
	"slices"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
)

// Profile is a way in which mcpx is used. Each difference between these ways is a field.
type Profile struct {
	// callLevel is the log level for the record of each call. Over stdio it is debug, because many clients store everything
	// that mcpx writes to stderr.
	callLevel slog.Level
	// oneClient means that mcpx serves one client over stdio. So only the servers in this client's view are needed, and servers cannot
	// get credentials from HTTP headers of clients.
	oneClient bool
	// manyClients means that mcpx can serve many clients, which share mcpx's sessions with servers. The clients may use older and
	// newer versions of MCP.
	manyClients bool
	// byUser means that mcpx makes one request for the user of a command. The user sees the whole result, and need not confirm a
	// call.
	byUser bool
	// fromDisk means that servers start only when they are needed, as with "start": "lazy". mcpx reads the tools of servers
	// that have not started from the cache on disk. A server that is not in the cache starts once, so that its tools get there.
	fromDisk bool
	// samples means that mcpx serves the servers of the demo, without a config file.
	samples bool
	// sealed means that clients over HTTP can go on with their sessions after a restart of mcpx or, in a cluster, at another
	// replica.
	sealed bool
	// authServer means that mcpx runs the authorization server of the config, and the pages on which principals log in to
	// servers.
	authServer bool
	// page means that mcpx records calls for the status page, unless the config turns the page off.
	page bool
	// saves means that the savings of tokens are kept in files.
	saves bool
	// measured means that mcpx counts calls by client, and has metrics if the config does not turn them off.
	measured bool
	// embedded means that mcpx is a part of another program, which neither edits the config file nor reads it again.
	embedded bool
	// spans means that mcpx sends traces, if the config names a collector.
	spans bool
}

var (
	// Command is for commands that start servers, such as mcpx check, mcpx lock and mcpx dial.
	Command = Profile{callLevel: slog.LevelDebug}
	// Once is for a command that makes one call.
	Once = Profile{callLevel: slog.LevelDebug, byUser: true}
	// Look is for a command that shows what a model sees. Measure is for a command that counts the tokens of what a model sees.
	// Stdio is for mcpx serve over stdio, and Hosted for mcpx serve over HTTP.
	Look    = Profile{callLevel: slog.LevelDebug, byUser: true, fromDisk: true}
	Measure = Profile{callLevel: slog.LevelDebug, fromDisk: true}
	Stdio   = Profile{callLevel: slog.LevelDebug, oneClient: true, saves: true, spans: true}
	Hosted  = Profile{
		manyClients: true, sealed: true, callLevel: slog.LevelInfo, authServer: true, page: true, saves: true, measured: true, spans: true,
	}
	// Desk is for the page of a user's own machine, beside the sessions over stdio.
	Desk = Profile{callLevel: slog.LevelDebug, fromDisk: true, page: true, saves: true}
	// Embedded is for a Go program that uses package mcpx. It does not write the savings of tokens to files. Demo is for the
	// sample servers, which need no config.
	Embedded = Profile{
		embedded: true, manyClients: true, callLevel: slog.LevelDebug, authServer: true, page: true, measured: true, spans: true,
	}
	Demo = Profile{manyClients: true, callLevel: slog.LevelDebug, samples: true, page: true}
)

func (p Profile) config(cfg *config.Config) (*config.Config, error) {
	switch {
	case p.samples:
		sample, err := config.Parse("demo", []byte(`{"mcpServers":{}}`), config.Options{})
		if err != nil {
			return nil, err
		}
		sample.Warnings = nil // removes the warning that no servers are defined; there is no other
		return sample, nil
	case p.byUser:
		once := *cfg
		once.ResultTokenLimit = 0      // no limit: after the command nobody could read the rest of a shortened result
		once.ExecWait = 24 * time.Hour // in effect no limit: the command starts the server first, which may take long
		once.Confirm = conf.ConfirmNone
		once.Servers = slices.Clone(cfg.Servers)
		for i := range once.Servers {
			once.Servers[i].Confirm = conf.ConfirmNone
		}
		return &once, nil
	}
	return cfg, nil
}

// servers returns the names of the servers that a command needs; none means all servers. names are the names that the user gave to
// the command.
func (p Profile) servers(names []string) []string {
	if p.byUser && slices.ContainsFunc(names, func(name string) bool { return name == "" || name == builtin.Name }) {
		return nil // an empty name means all servers, and the tools of the built-in server mcpx use all servers
	}
	return names
}
