package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/desk/config"
)

// ConfigFile is a config file of mcpx that commands edit.
type ConfigFile struct {
	Path string
	// Reading are the options for parsing the text to check it. With these options, parsing must not access the keyring and must
	// run no commands.
	Reading config.Options
}

// Edit changes the text of the config with the function change. If there is no file, change gets an empty text. Edit writes the new
// text only if it is a valid config and check accepts it; check may be nil. Several mcpx that edit the file at once take turns.
func (f ConfigFile) Edit(change func(data []byte) ([]byte, error), check func(*config.Config) error) error {
	file, err := atomicfile.Target(f.Path)
	if err != nil {
		_, _, unread := config.Read(f.Path) // gives the same error as the commands that only read the config
		return cmp.Or(unread, err)
	}
	_, err = InTurn(file, func() error { return f.edit(file, change, check) })
	return err
}

// edit does the work of [ConfigFile.Edit]. target is Path or, if that is a link, the file behind it.
func (f ConfigFile) edit(target string, change func(data []byte) ([]byte, error), check func(*config.Config) error) error {
	before, existed, err := config.Read(f.Path)
	if err != nil {
		return err
	}
	after, err := change(before)
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
	return replace(target, after, before, existed)
}

// WhyNot returns the error to report after an edit of the text original has failed with the error err. If original was not a valid
// config, WhyNot returns the error of parsing original, which says where the fault is. But if original was valid or blank, or if
// err is [ErrNoServer], it returns err with a note that nothing was written.
func (f ConfigFile) WhyNot(original []byte, err error) error {
	if _, fault := config.Parse(f.Path, original, f.Reading); fault != nil && !Blank(original) && !errors.Is(err, ErrNoServer) {
		return fault
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// Named returns a function for [ConfigFile.Edit] that calls change for one server. The parameter name of Named is the server's name
// in the file, or the name under which mcpx serves it. In both cases change gets the server's name in the file.
func (f ConfigFile) Named(name string, change func(data []byte, name string) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		inFile := name
		if cfg, err := config.Parse(f.Path, data, f.Reading); err == nil && !slices.Contains(ServerNames(data), name) {
			for _, server := range cfg.Servers {
				if server.Name == name {
					inFile = cmp.Or(server.Written, name)
				}
			}
		}
		return change(data, inFile)
	}
}
