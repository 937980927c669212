package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

// hintError is an error with advice for the user.
type hintError struct{ text, hint string }

func (e *hintError) Error() string { return e.text }

func (e *hintError) Hint() string { return e.hint }

// usageError is an error in the command line that kong does not detect. It has the exit code of kong's own
// errors.
type usageError struct{ hintError }

// asker asks the user at the terminal. It must be used by one goroutine only.
type asker struct {
	s     streams
	yes   bool        // the flag --yes: every answer is yes without a question
	lines chan string // lines from the terminal; nil before the first question
}

// ask asks the user before a change and reports whether the answer is yes. If there is no terminal, ask returns an error with a
// hint. The hint is the parameter unasked, a command line that makes the change without a question.
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

// agrees asks the user at the terminal and reports whether the answer is yes.
func (a *asker) agrees(ctx context.Context, question string) (bool, error) {
	line, err := a.line(ctx, question+" [y/N] ")
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", err
}

// line asks the user for a line at the terminal. The result is empty if the input has ended.
func (a *asker) line(ctx context.Context, prompt string) (string, error) {
	if a.lines == nil {
		a.lines = make(chan string)
		go func() { // the goroutine ends with the input, with the command in the daemon, or with the process
			defer close(a.lines)
			for in := bufio.NewScanner(a.s.in); in.Scan(); {
				select {
				case a.lines <- in.Text():
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	fmt.Fprint(a.s.out, prompt)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line := <-a.lines:
		return line, nil
	}
}

// askFor shows a change of a file as a diff, and asks the user whether to make it. unasked is a command line that makes the change
// without a question, for the hint if there is no terminal.
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

// system returns what determines the paths of clients' files, such as the home and the working folder.
func (s streams) system() (setup.System, error) {
	dir, err := os.Getwd()
	return setup.Here(s.getenv, dir), err
}

// ownFolder returns mcpx's folder in the user's configuration folder.
func ownFolder() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "mcpx"), nil
}

// configFile returns the path of the config that commands edit or name to clients: the file of --config or $MCPX_CONFIG, otherwise
// the config in the user's configuration folder, whether or not it exists. It returns ./config.json only if the user names that
// file, because it may belong to another program.
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

// hint returns an mcpx command line for the user to run, quoted for the shell. If the user has given a config, or the command runs
// in the daemon, the line names the config. If words contain "--", which ends the flags of mcpx, the flag --config comes before it.
func (c *cli) hint(words ...string) string {
	if c.Config != "" {
		at := slices.Index(words, "--")
		if at < 0 {
			at = len(words)
		}
		words = slices.Insert(slices.Clone(words), at, "--config", c.Config)
	}
	return "mcpx " + terminal.CommandLine(words...)
}

// withConfig adds the config to a command line in a text that comes from another package. If the text contains the command line
// "mcpx" with these words, withConfig replaces that command line by the one that [cli.hint] returns.
func (c *cli) withConfig(text string, words ...string) string {
	return strings.ReplaceAll(text, "mcpx "+strings.Join(words, " "), c.hint(words...))
}

// hinted returns an error whose hint has been changed by [cli.withConfig]. If err has no hint, it returns err itself.
func (c *cli) hinted(err error, words ...string) error {
	if hint, ok := errors.AsType[interface {
		error
		Hint() string
	}](err); ok {
		return &hintError{err.Error(), c.withConfig(hint.Hint(), words...)}
	}
	return err
}

// backups returns the store for backups of files that mcpx has changed.
func backups() (setup.Backups, error) {
	folder, err := ownFolder()
	return setup.Backups{Dir: filepath.Join(folder, "backups")}, err
}

// command returns the path with which clients start this mcpx, or an error if this mcpx is in a temporary place. If mcpx in
// PATH is a link to the same file, it returns that link: package managers move the file itself with each update.
func command() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this executable: %w", err)
	}
	if strings.Contains(self, "go-build") && filepath.Base(filepath.Dir(self)) == "exe" {
		return "", &hintError{"this mcpx is a temporary build that go run removes", "install it first: go install ./cmd/mcpx"}
	}
	if install := cached(filepath.ToSlash(self)); install != "" {
		return "", &hintError{"this mcpx is in a cache, which is emptied some day, and clients would not find it then", "install it first: " + install}
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

// cached tells whether the executable at path is in the cache of npx, pnpm, bunx or uvx, which run packages without installing
// them. If so, it returns the command that installs mcpx; otherwise it returns "".
func cached(path string) string {
	switch {
	case strings.Contains(path, "/_npx/"), strings.Contains(path, "/.pnpm/dlx"), strings.Contains(path, "/bunx-"):
		return "npm install --global " + config.Distribution
	case strings.Contains(path, "/archive-v0/"):
		return "uv tool install " + config.Distribution
	}
	return ""
}

// editConfig edits the text of the config. It writes the new text only if it is a valid config.
func (c *cli) editConfig(s streams, edit func(data []byte) ([]byte, error)) (file string, err error) {
	file, err = c.configFile()
	if err != nil {
		return "", err
	}
	return file, s.configAt(file).Edit(edit, nil)
}

func (s streams) configAt(file string) setup.ConfigFile {
	s.absent = true // an edit does not need the values of secrets
	return setup.ConfigFile{Path: file, Reading: s.reading()}
}
