package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/executor"
	"mcpx/internal/registry"
)

// Savings counts the tokens of results, received and sent, over all runs with one
// config file.
type Savings struct {
	Since time.Time `json:"since"`
	executor.Account
}

// savingsPath is the file with the account of a config file.
func savingsPath(config string) string {
	if absolute, err := filepath.Abs(config); err == nil {
		config = absolute
	}
	if dir := cacheDir(); dir != "" {
		return filepath.Join(filepath.Dir(dir), "savings", registry.Key(config)+".json")
	}
	return ""
}

// LoadSavings reads the account of a config file; it is empty if missing or broken.
func LoadSavings(config string) Savings {
	var s Savings
	data, err := os.ReadFile(savingsPath(config))
	if err != nil || json.Unmarshal(data, &s) != nil {
		return Savings{}
	}
	return s
}

// saveSavings adds this run to the account. Runs that end at the same moment can
// lose each other's addition: it is an estimate for people, not a bill.
func (a *App) saveSavings() {
	path := savingsPath(a.Config.Path)
	run := executor.Account{}
	for _, one := range a.Executor.Accounts() {
		run.Add(one)
	}
	if run.Calls == 0 || path == "" {
		return
	}
	s := LoadSavings(a.Config.Path)
	if s.Since.IsZero() {
		s.Since = time.Now().UTC().Truncate(time.Second)
	}
	s.Add(run)
	if data, err := json.Marshal(s); err == nil {
		_ = atomicfile.Write(path, data, 0o600) // else this run is not in the estimate
	}
}
