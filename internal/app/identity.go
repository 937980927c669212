package app

import (
	"net/url"

	"mcpx/internal/config"
	"mcpx/internal/identity"
)

// identities makes the options of who may connect; nil: everybody.
func identities(cfg *config.Config) *identity.Options {
	if cfg.Auth == nil {
		return nil
	}
	o := &identity.Options{}
	if cfg.Auth.Resource != "" {
		o.Resource, _ = url.Parse(cfg.Auth.Resource) // config has checked it
	}
	for _, t := range cfg.Auth.Tokens {
		o.Tokens = append(o.Tokens, identity.Token(t))
	}
	return o
}

// changeIdentities applies another config's auth. Auth that is gone stays in force until
// the next start, which decides whether its address is safe without.
func (a *App) changeIdentities(to *config.Config) {
	if to.Auth == nil && a.identity.Options() != nil {
		a.log.Error("the config has no auth any more: the one before stays in force until mcpx starts again")
		return
	}
	a.identity.SetOptions(identities(to))
}
