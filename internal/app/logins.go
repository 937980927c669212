package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
	"mcpx/internal/desk/secret"
)

// Logins returns the store of this user's logins at servers. It is in the user's folder for configs and not in one for caches,
// because a cache may be emptied. If there is no such folder, the store keeps nothing.
func Logins(log *slog.Logger) *logins.Logins {
	folder, err := os.UserConfigDir()
	if err != nil {
		return logins.New("", log)
	}
	return logins.New(filepath.Join(folder, "mcpx", "logins"), log)
}

// Secrets returns the store of this user's secrets, which configs refer to by name. It is in the user's folder for configs. If there
// is no such folder, the store keeps nothing: another user could have put secrets into the folder for temporary files.
func Secrets() *secret.Store {
	folder, err := os.UserConfigDir()
	if err != nil {
		return secret.New("")
	}
	return secret.New(filepath.Join(folder, "mcpx", "secrets"))
}

// LoginServer returns a server of the config in the form that package logins needs.
func LoginServer(s config.Server) logins.Server {
	return logins.Server{Name: s.Name, URL: s.URL, URLs: s.URLs, Headers: s.Headers, OAuth: s.OAuth}
}

// followEvery is the time between two checks whether logins have changed.
const followEvery = time.Second

// followLogins makes mcpx connect again to an unavailable server when the login at that server has changed. That happens when mcpx
// login runs in another process. followLogins returns when ctx ends.
func (a *App) followLogins(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, name := range a.logins.Changed() {
			if status, ok := a.Registry.Status(name); ok && status.State == catalog.Unavailable {
				a.Registry.Retry(name)
			}
		}
	}
}
