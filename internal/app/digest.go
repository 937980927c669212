package app

import (
	"encoding/json"
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/share"
	"mcpx/internal/registry"
)

// Digest returns a digest of a whole config, and of how the servers in names would start on behalf of the process o. If names is
// empty, all servers of the config are meant. Two commands with the same digest can share one App.
func (o Origin) Digest(cfg *config.Config, names []string) string {
	session := share.NewSession(o.Environ, o.Folder)
	whole, err := json.Marshal(cfg)
	parts := []string{string(whole)}
	if err != nil {
		parts = append(parts, err.Error()) // the config cannot be encoded; the parts that follow still identify the servers
	}
	for _, s := range cfg.Servers {
		if len(names) == 0 || slices.Contains(names, s.Name) {
			parts = append(parts, s.Name, definition(cfg, s), session.Digest(&s, conf.ShareFolder))
		}
	}
	return registry.Key(parts...)
}
