// Package keyring keeps small secrets in the keyring of the operating system, each under
// a name of mcpx.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// service is what the secrets of mcpx stand under in the keyring.
const service = "mcpx"

// patience bounds one access: a keyring that is locked may ask its user first.
const patience = 20 * time.Second

// ErrNotFound says that the keyring works, and has nothing under that name.
var ErrNotFound = keyring.ErrNotFound

// errOff says that the user wants no keyring.
var errOff = errors.New("MCPX_KEYRING=off")

// Get returns the secret of that name. Its error is [ErrNotFound], or says why there is
// no keyring.
func Get(ctx context.Context, name string) (secret string, err error) {
	return access(ctx, func() (string, error) { return keyring.Get(service, name) })
}

// Set keeps a secret, at most 2,500 bytes of it: Windows takes no more.
func Set(ctx context.Context, name, secret string) error {
	_, err := access(ctx, func() (string, error) { return "", keyring.Set(service, name, secret) })
	return err
}

// Delete forgets the secret of that name. Its error is [ErrNotFound] where there is none.
func Delete(ctx context.Context, name string) error {
	_, err := access(ctx, func() (string, error) { return "", keyring.Delete(service, name) })
	return err
}

// access does one thing with the keyring, for at most patience and not beyond ctx.
func access(ctx context.Context, do func() (string, error)) (string, error) {
	if strings.EqualFold(os.Getenv("MCPX_KEYRING"), "off") {
		return "", errOff
	}
	startNoBus()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type outcome struct {
		secret string
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the call into the system, which nothing can end earlier
		secret, err := do()
		done <- outcome{secret, err}
	}()
	select {
	case o := <-done:
		if o.err != nil && !errors.Is(o.err, ErrNotFound) {
			return "", fmt.Errorf("the keyring of the system: %w", o.err)
		}
		return o.secret, o.err
	case <-ctx.Done():
		return "", fmt.Errorf("the keyring of the system does not answer: %w", ctx.Err())
	}
}

// startNoBus keeps the D-Bus library from starting a message bus where there is none
// (dbus-launch): nobody would end it.
func startNoBus() {
	const variable = "DBUS_SESSION_BUS_ADDRESS"
	address := os.Getenv(variable)
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || address != "" && address != "autolaunch:" {
		return
	}
	folder := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, name := range []string{"bus", "dbus-session"} { // where that library looks
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return
		}
	}
	_ = os.Setenv(variable, "unix:path="+filepath.Join(folder, "bus")) // fails for odd names alone
}
