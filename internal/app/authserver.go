package app

import (
	"net/http"
	"reflect"

	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/authserver"
)

// authServer is the authorization server with the options that it was made of.
type authServer struct {
	*authserver.Server
	of        *authserver.Options
	keyInFile bool // the config has none
}

// newAuthServer makes the authorization server that auth describes, or returns before, which goes
// on, if that has the same options; nil: none.
func (b *builder) newAuthServer(auth *config.Auth, before *authServer) (*authServer, error) {
	wanted, err := b.authServerOptions(auth, before)
	switch {
	case err != nil || wanted == nil:
		return nil, err
	case before != nil && reflect.DeepEqual(before.of, wanted):
		return before, nil
	}
	made, err := authserver.New(*wanted, b.state.grants)
	if err != nil {
		return nil, err
	}
	b.log.Info("people log in at the issuer, which must know this address of mcpx",
		"issuer", wanted.Issuer, "redirect_uri", made.Callback())
	return &authServer{made, wanted, auth.Front.Key == ""}, nil
}

// authServerOptions are the options of the authorization server that auth describes; nil: none.
func (b *builder) authServerOptions(auth *config.Auth, before *authServer) (*authserver.Options, error) {
	if !b.profile.authServer || auth == nil || auth.Front == nil {
		return nil, nil
	}
	f := auth.Front
	secret, err := b.state.secretOf(f.Key, before)
	if err != nil {
		return nil, err
	}
	return &authserver.Options{Resource: auth.Resource, Granted: auth.Scopes, AuthServer: *f, Secret: secret, Log: b.log}, nil
}

// issuing is the authorization server in force, for its paths.
func (a *App) issuing(path string) http.Handler {
	if server := a.current.Load().authServer; server != nil && authserver.Serves(path) {
		return server
	}
	return nil
}
