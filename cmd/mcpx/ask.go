package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mcpx/internal/desk/setup"
)

// This file has the shared parts of the commands that edit config files: init, connect,
// disconnect, add, remove, enable and disable.

// hintError is an error with advice for the user.
type hintError struct{ text, hint string }

func (e *hintError) Error() string { return e.text }

// Hint is the advice.
func (e *hintError) Hint() string { return e.hint }

// usageError is a command line that cannot be meant: it exits like those that kong
// refuses.
type usageError struct{ hintError }

// asker asks the user at the terminal. It is for one goroutine.
type asker struct {
	s     streams
	yes   bool
	lines chan string
}

// ask asks a question and reports whether the answer is yes; otherwise it prints that
// nothing was written. Without a terminal it is an error with unasked, the command that
// needs no answer.
func (a *asker) ask(ctx context.Context, question, unasked string) (bool, error) {
	if a.yes {
		return true, nil
	}
	if !a.s.terminal {
		return false, &hintError{"nothing was written: there is no terminal to ask at", "run: " + unasked}
	}
	yes, err := a.agrees(ctx, question)
	if err == nil && !yes {
		fmt.Fprintln(a.s.out, "nothing was written")
	}
	return yes, err
}

// agrees asks a question at the terminal, and reports whether the answer is yes.
func (a *asker) agrees(ctx context.Context, question string) (bool, error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() { // ends with the input, or with the process
			defer close(a.lines)
			for in := bufio.NewScanner(a.s.in); in.Scan(); {
				a.lines <- in.Text()
			}
		}()
	}
	fmt.Fprintf(a.s.out, "%s [y/N] ", question)
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case line := <-a.lines:
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes", nil
	}
}

// askFor shows the change of a client's file and asks for consent. unasked is the command
// that makes the change without a question.
func (a *asker) askFor(ctx context.Context, change setup.Change, sys setup.System, unasked string) (bool, error) {
	for line := range strings.Lines(change.Diff(sys)) {
		text, end := strings.TrimSuffix(line, "\n"), "\n"
		switch {
		case strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++"):
			text = a.s.screen.Bold(text)
		case line[0] == '-':
			text = a.s.screen.Red(text)
		case line[0] == '+':
			text = a.s.screen.Green(text)
		case line[0] == '@':
			text = a.s.screen.Dim(text)
		}
		fmt.Fprint(a.s.out, text, end)
	}
	if change.Gone {
		fmt.Fprintln(a.s.out, "The file goes; mcpx had made it.")
	}
	return a.ask(ctx, "Write this to "+sys.Short(change.File)+"?", unasked)
}

// system has the folders that may have files of clients.
func (s streams) system() (setup.System, error) {
	dir, err := os.Getwd()
	return setup.Here(s.getenv, dir), err
}

// ownFolder is the folder of mcpx in the user's configuration folder.
func ownFolder() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "mcpx"), nil
}

// configFile is the config to edit: the one that the user names, else the one in the
// user's configuration folder. It is never ./config.json, which may belong to another
// program.
func (c *cli) configFile() (string, error) {
	if c.Config != "" {
		return filepath.Abs(c.Config)
	}
	folder, err := ownFolder()
	if err != nil {
		return "", &hintError{"there is no user configuration folder: " + err.Error(), "name the config with --config"}
	}
	return filepath.Join(folder, "config.json"), nil
}

func backups() (setup.Backups, error) {
	folder, err := ownFolder()
	return setup.Backups{Dir: filepath.Join(folder, "backups")}, err
}

// command is the path for clients to start this mcpx. If the PATH leads to the same file,
// it is the path there: a package manager moves the file itself at each update.
func command() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this executable: %w", err)
	}
	if strings.Contains(self, "go-build") && filepath.Base(filepath.Dir(self)) == "exe" {
		return "", &hintError{"this mcpx is a temporary build that go run removes", "install it first: go install ./cmd/mcpx"}
	}
	own, err := os.Stat(self)
	if err != nil {
		return "", err
	}
	if found, err := exec.LookPath("mcpx"); err == nil {
		if other, err := os.Stat(found); err == nil && os.SameFile(own, other) {
			return filepath.Abs(found)
		}
	}
	return self, nil
}

// editConfig changes the text of the config. It writes only a config that loads.
func (c *cli) editConfig(s streams, edit func(data []byte) ([]byte, error)) (file string, err error) {
	file, err = c.configFile()
	if err != nil {
		return "", err
	}
	return file, s.configAt(file).Edit(edit, nil)
}

func (s streams) configAt(file string) setup.ConfigFile {
	return setup.ConfigFile{Path: file, Reading: s.reading()}
}
