package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mcpx/internal/hosted/httpd"
)

// ServeFaults returns why mcpx serve would not start with this config: it could not load its certificates, or not write the audit
// trail. It writes nothing to the trail, which a running mcpx may have open.
func (a *App) ServeFaults() (faults []string) {
	if a.Config.TLS != nil {
		if _, err := a.loadTLS(); err != nil {
			faults = append(faults, err.Error())
		}
	}
	if trail := a.Config.Audit; trail != nil {
		if err := writable(trail.File); err != nil {
			faults = append(faults, (&unwritableError{"audit.file", trail.File, err}).Error())
		}
	}
	return faults
}

// loadTLS loads the certificates that the config names.
func (a *App) loadTLS() (*httpd.TLS, error) {
	files := *a.Config.TLS
	files.Identity = a.Config.Auth != nil && a.Config.Auth.Certificates
	loaded, err := httpd.LoadTLS(files, a.log)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return loaded, nil
}

// writable returns an error if this user cannot append to the file, or cannot make files beside it. If the folder does not exist, it
// must be possible to make it.
func writable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case err == nil:
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return cause(err)
		}
		_ = f.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return cause(err)
	}
	folder := filepath.Dir(file)
	for _, err = os.Stat(folder); errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder); _, err = os.Stat(folder) {
		folder = filepath.Dir(folder)
	}
	f, err := os.CreateTemp(folder, ".mcpx-*") // there is no other way to know that works on every system
	if err != nil {
		return cause(err)
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return nil
}

// cause returns an error without its path.
func cause(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}
