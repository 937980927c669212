package app

import (
	"io"

	"mcpx/internal/base/wiretrace"
	"mcpx/internal/desk/config"
)

// traceTo writes all messages to a writer from now on; nil = nowhere. It is called before
// the parts are made.
func (a *App) traceTo(out io.Writer) {
	if out == nil {
		return
	}
	a.messages = wiretrace.New(out, config.SecretName, a.log)
	a.traceSecrets(a.Config)
}

// traceSecrets sets what is struck out of the trace, if there is one.
func (a *App) traceSecrets(cfg *config.Config) {
	if a.messages == nil {
		return
	}
	secrets := cfg.Secrets
	for _, s := range cfg.Servers {
		secrets = append(secrets[:len(secrets):len(secrets)], s.Secrets...)
	}
	a.messages.SetSecrets(secrets)
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
