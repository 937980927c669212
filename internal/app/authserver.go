package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"

	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/authserver"
)

// frontOptions are the options of the authorization server that auth describes; nil: none.
func (a *App) frontOptions(auth *config.Auth) (*authserver.Options, error) {
	if !a.hosted || auth == nil || auth.Front == nil {
		return nil, nil
	}
	f := auth.Front
	folder, err := os.UserConfigDir()
	switch {
	case err == nil:
		folder = filepath.Join(folder, "mcpx")
	case f.Key == "":
		return nil, fmt.Errorf("there is no folder to keep a key in: %w; auth.front.key needs none", err)
	default:
		a.log.Warn("which logins were used is forgotten when mcpx ends, as there is no folder for it", "err", err)
	}
	o := &authserver.Options{
		Resource: auth.Resource, Granted: auth.Scopes,
		Issuer: f.Issuer, ClientID: f.ClientID, ClientSecret: f.ClientSecret, Scopes: f.Scopes, GroupsClaim: f.GroupsClaim, AllowPrivate: f.AllowPrivate,
		Allow:     authserver.Allow{Emails: f.Emails, Groups: f.Groups, Subjects: f.Subjects},
		Redirects: f.Redirects, NoDocuments: f.NoDocuments, Folder: folder, Log: a.log,
	}
	if f.Key != "" {
		o.Key = []byte(f.Key)
	}
	return o, nil
}

// changeFront replaces the authorization server by the one that auth describes. One with the
// same settings goes on.
func (a *App) changeFront(auth *config.Auth) error {
	wanted, err := a.frontOptions(auth)
	if err != nil {
		return fmt.Errorf("auth.front: %w", err)
	}
	if reflect.DeepEqual(wanted, a.frontWanted) {
		return nil
	}
	var next *authserver.Server
	if wanted != nil {
		if next, err = authserver.New(*wanted); err != nil {
			return fmt.Errorf("auth.front: %w", err)
		}
		a.log.Info("people log in at the issuer, which must know this address of mcpx", "issuer", wanted.Issuer, "redirect_uri", next.Callback())
	}
	a.frontWanted = wanted
	if before := a.front.Swap(next); before != nil {
		before.Close()
	}
	return nil
}

// authServer is the authorization server in force, for its paths.
func (a *App) authServer(path string) http.Handler {
	if front := a.front.Load(); front != nil && authserver.Serves(path) {
		return front
	}
	return nil
}
