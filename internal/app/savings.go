package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"mcpx/internal/executor"
)

// Savings counts the tokens of results on this machine, received and sent, over all
// runs.
type Savings struct {
	Since time.Time `json:"since"`
	executor.Account
}

func savingsPath() string {
	if dir := cacheDir(); dir != "" {
		return filepath.Join(filepath.Dir(dir), "savings.json")
	}
	return ""
}

// LoadSavings reads the account; a missing or broken file is an empty one.
func LoadSavings() Savings {
	var s Savings
	data, err := os.ReadFile(savingsPath())
	if err != nil || json.Unmarshal(data, &s) != nil {
		return Savings{}
	}
	return s
}

// saveSavings adds this run to the account. Runs that end at the same moment can
// lose each other's addition: it is an estimate for people, not a bill.
func (a *App) saveSavings() {
	path := savingsPath()
	run := executor.Account{}
	for _, one := range a.Executor.Accounts() {
		run.Calls += one.Calls
		run.Received += one.Received
		run.Sent += one.Sent
	}
	if run.Calls == 0 || path == "" {
		return
	}
	s := LoadSavings()
	if s.Since.IsZero() {
		s.Since = time.Now().UTC().Truncate(time.Second)
	}
	s.Calls += run.Calls
	s.Received += run.Received
	s.Sent += run.Sent
	data, err := json.Marshal(s)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	temp := path + ".tmp"
	if os.WriteFile(temp, data, 0o600) == nil {
		_ = os.Rename(temp, path)
	}
}
