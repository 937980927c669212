package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/proc"
)

// settleAfter is for what follows the last server: the texts, the cache files.
const settleAfter = time.Second

// settle gives back, once every server has been tried, the memory that only the
// start needed.
func (a *app) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a.registry.WaitTried(ctx)
	timer := time.NewTimer(settleAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	debug.FreeOSMemory()
	proc.DropFilePages()
}

// savings is what results have cost and saved on this machine, over all runs.
type savings struct {
	Since time.Time `json:"since"`
	executor.Account
}

func savingsPath() string {
	if dir := cacheDir(); dir != "" {
		return filepath.Join(filepath.Dir(dir), "savings.json")
	}
	return ""
}

// loadSavings reads the account; a missing or broken file is an empty one.
func loadSavings() savings {
	var s savings
	data, err := os.ReadFile(savingsPath())
	if err != nil || json.Unmarshal(data, &s) != nil {
		return savings{}
	}
	return s
}

// saveSavings adds this run to the account. Runs that end at the same moment can
// lose each other's addition: it is an estimate for people, not a bill.
func (a *app) saveSavings() {
	path := savingsPath()
	run := executor.Account{}
	for _, one := range a.executor.Accounts() {
		run.Calls += one.Calls
		run.Received += one.Received
		run.Sent += one.Sent
	}
	if run.Calls == 0 || path == "" {
		return
	}
	s := loadSavings()
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
