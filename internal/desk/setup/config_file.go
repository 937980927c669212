package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/desk/config"
)

// ConfigFile is a config of mcpx whose servers are edited.
type ConfigFile struct {
	Path string
	// Reading are the options to judge the text with, without a keyring and commands.
	Reading config.Options
}

// Edit changes the text, which is empty where there is no file. It writes only a config that
// loads and that check, where not nil, has nothing against.
func (f ConfigFile) Edit(edit func(data []byte) ([]byte, error), check func(*config.Config) error) error {
	before, existed, err := ReadConfig(f.Path)
	if err != nil {
		return err
	}
	after, err := edit(before)
	if err == nil {
		var cfg *config.Config
		if cfg, err = config.Parse(f.Path, after, f.Reading); err == nil && check != nil {
			err = check(cfg)
		}
	}
	if err != nil {
		return f.WhyNot(before, err)
	}
	if existed && bytes.Equal(before, after) {
		return nil
	}
	return WriteConfig(f.Path, after, before, existed)
}

// WhyNot is the error for an edit that failed with err: the fault that the file had before,
// with its position, else err.
func (f ConfigFile) WhyNot(before []byte, err error) error {
	if _, fault := config.Parse(f.Path, before, f.Reading); fault != nil && !Blank(before) && !errors.Is(err, ErrNoServer) {
		return fault
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// Named makes an edit of a server that is known by its name in the file, or by the one
// that it is served under.
func (f ConfigFile) Named(name string, edit func(data []byte, name string) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		inFile := name
		if cfg, err := config.Parse(f.Path, data, f.Reading); err == nil && !slices.Contains(ServerNames(data), name) {
			for _, server := range cfg.Servers {
				if server.Name == name {
					inFile = cmp.Or(server.Written, name)
				}
			}
		}
		return edit(data, inFile)
	}
}
