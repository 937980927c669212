package app

import (
	"io"
	"slices"

	"mcpx/internal/base/wiretrace"
	"mcpx/internal/desk/config"
)

// traceTo writes all messages to a writer from now on; nil = nowhere. It is called before
// the parts are made.
func (a *App) traceTo(out io.Writer) {
	if out != nil {
		a.messages = wiretrace.New(out, config.SecretName, func() wiretrace.Secrets { return a.current.Load().secrets }, a.log)
	}
}

// secretsOf are what is struck out of the trace.
func secretsOf(cfg *config.Config) wiretrace.Secrets {
	secrets := slices.Clone(cfg.Secrets)
	for _, s := range cfg.Servers {
		secrets = append(secrets, s.Secrets...)
	}
	return wiretrace.NewSecrets(secrets)
}

// traceClients returns what fronts call with each message; nil without a trace.
func (a *App) traceClients() func(peer string, received bool, message []byte) {
	if a.messages == nil {
		return nil
	}
	return a.messages.Client
}

// traceServer returns what the upstream of a server calls with each message; nil without a
// trace.
func (a *App) traceServer(name string) func(received bool, message []byte) {
	if a.messages == nil {
		return nil
	}
	return func(received bool, message []byte) { a.messages.Server(name, received, message) }
}
