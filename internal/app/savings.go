package app

import (
	"os"
	"path/filepath"

	"mcpx/internal/builtin"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/savings"
	"mcpx/internal/registry"
	"mcpx/internal/request"
)

// savingsDir returns the folder with the savings of a config file. All processes with this config share the folder. The result is
// empty if the user has no folder for caches.
func savingsDir(file string) string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "mcpx", "savings", registry.Key(config.Real(file)))
}

// openBook makes the book, in which the method count adds up how many tokens mcpx has saved.
func (a *App) openBook() {
	dir := ""
	if a.profile.saves {
		dir = savingsDir(a.Config.Path)
	}
	a.book = savings.New(dir, a.log)
}

// count adds to the book how many tokens mcpx has saved with one message. r is the event of the message.
func (a *App) count(r *request.Event) {
	if r.Definitions != nil {
		for _, one := range r.Definitions() {
			f := savings.Figures{Definitions: int64(one.Tokens)}
			// Each answer to tools/list has exactly one definition of this kind, so counting them counts the sessions that have
			// listed tools.
			if one.Server == builtin.Name && one.Tool == "" {
				f.Sessions = 1
			}
			a.book.Add(r.Began, savings.Key{Server: one.Server, Tool: one.Tool, Client: r.Client}, f)
		}
	}
	switch {
	case r.Answered:
		a.book.Add(r.Began, savings.Key{Server: r.Server, Tool: r.Tool, Client: r.Client}, savings.Figures{
			Calls: 1, Received: int64(r.Received), Sent: int64(r.Sent),
			Compression: int64(r.Compression()), Cut: int64(r.Cut), LeftOut: int64(r.LeftOut),
		})
	case r.ReadOn != nil:
		a.book.Add(r.Began, savings.Key{Server: r.ReadOn.Server, Tool: r.ReadOn.Tool, Client: r.Client}, savings.Figures{
			Sent: int64(r.Sent), Cut: -int64(r.Sent),
		})
	}
}
