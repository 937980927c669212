package app

import (
	"encoding/json"
	"slices"

	"mcpx/internal/base/proc"
	"mcpx/internal/desk/config"
	"mcpx/internal/registry"
)

// Digest identifies a config with all its values, and how its servers would start for o; only, if not empty, names the servers
// that matter. Two processes with the same digest and folder can use one App.
func Digest(cfg *config.Config, o Origin, only []string) string {
	whole, err := json.Marshal(cfg)
	parts := []string{string(whole)}
	if err != nil { // a part of the config cannot be compared, so nothing is the same
		parts = append(parts, o.Folder, err.Error())
	}
	for _, s := range cfg.Servers {
		if len(only) == 0 || slices.Contains(only, s.Name) {
			parts = append(append(parts, s.Name, definition(cfg, s)), proc.Same(s.Command, o.environ())...)
		}
	}
	return registry.Key(parts...)
}
