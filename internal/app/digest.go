package app

import (
	"encoding/json"
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/share"
	"mcpx/internal/registry"
)

// Digest returns a digest of a config with all its values, and of the way in which its servers would start for the process o. If only
// is not empty, the way of other servers than those in only is left out. Two commands with the same digest can share one App.
func (o Origin) Digest(cfg *config.Config, only []string) string {
	session := share.NewSession(o.Environ, o.Folder)
	whole, err := json.Marshal(cfg)
	parts := []string{string(whole)}
	if err != nil {
		parts = append(parts, err.Error()) // without the JSON, the parts that follow still identify the servers
	}
	for _, s := range cfg.Servers {
		if len(only) == 0 || slices.Contains(only, s.Name) {
			parts = append(parts, s.Name, definition(cfg, s), session.Digest(&s, conf.ShareFolder))
		}
	}
	return registry.Key(parts...)
}
