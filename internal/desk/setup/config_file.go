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
	// Reading are the options to check the text with. They look up no keyring and run no commands.
	Reading config.Options
}

// Edit changes the text of the config, which is empty if there is no file. It writes the new text
// only if the text loads and check, if not nil, accepts it.
func (f ConfigFile) Edit(edit func(data []byte) ([]byte, error), check func(*config.Config) error) error {
	before, existed, err := Read(f.Path)
	if err != nil {
		return err
	}
	after, err := edit(before)
	var cfg *config.Config
	if err == nil {
		cfg, err = config.Parse(f.Path, after, f.Reading)
	}
	if err == nil && check != nil {
		err = check(cfg)
	}
	if err != nil {
		return f.WhyNot(before, err)
	}
	if existed && bytes.Equal(before, after) {
		return nil
	}
	_, err = write(f.Path, after, before, existed)
	return err
}

// WhyNot returns the error for an edit that failed with err. If the file was invalid before the
// edit, the error is that fault and its position.
func (f ConfigFile) WhyNot(before []byte, err error) error {
	if _, fault := config.Parse(f.Path, before, f.Reading); fault != nil && !Blank(before) && !errors.Is(err, ErrNoServer) {
		return fault
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// Named binds edit to a server. name is its name in the file, or the name under which mcpx serves
// it.
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
