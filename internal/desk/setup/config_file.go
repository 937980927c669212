package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/desk/config"
)

// ConfigFile is a config file of mcpx that commands edit.
type ConfigFile struct {
	Path string
	// Reading are the options for parsing the text to check it. With these options, parsing does not access the keyring and runs no
	// commands.
	Reading config.Options
}

// Edit changes the text of the config. If there is no file, edit gets an empty text. Edit writes the new text only if it
// is a valid config and check accepts it; check may be nil.
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

// WhyNot returns the error to report after an edit has failed with the error err. If the config was invalid even before the edit, WhyNot
// returns the error of parsing the config, which says where the fault is. Otherwise it returns err.
func (f ConfigFile) WhyNot(before []byte, err error) error {
	if _, fault := config.Parse(f.Path, before, f.Reading); fault != nil && !Blank(before) && !errors.Is(err, ErrNoServer) {
		return fault
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// Named returns a function for [ConfigFile.Edit], which calls the parameter edit for one server. The parameter name of Named is the
// server's name in the file, or the name under which mcpx serves it. In both cases edit gets the server's name in the file.
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
