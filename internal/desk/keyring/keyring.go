// Package keyring stores small secrets of mcpx in the keyring of the operating system. Each secret has a name.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the service name under which the keyring has all secrets of mcpx.
const service = "mcpx"

// patience is the time limit for one access. It allows for a locked keyring that asks the user first.
const patience = 20 * time.Second

// ErrNotFound means that the keyring works, but has no secret of this name.
var ErrNotFound = keyring.ErrNotFound

// errOff means that the user has turned the keyring off.
var errOff = errors.New("MCPX_KEYRING=off")

// Get returns a secret. Its error is [ErrNotFound] if the secret does not exist; any other error says why the keyring
// cannot be used.
func Get(ctx context.Context, name string) (secret string, err error) {
	return access(ctx, func() (string, error) { return keyring.Get(service, name) })
}

// MaxBytes returns a size in bytes. The keyring of this system accepts secrets up to this size, whatever their names are. On
// Windows this is the exact limit. On macOS the limit is about 2,900 bytes, and depends on the length of the name. Other systems
// have no such limit.
func MaxBytes() int {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return 2560
	}
	return math.MaxInt
}

// Set stores a secret. It fails if the secret is too large, see [MaxBytes].
func Set(ctx context.Context, name, secret string) error {
	_, err := access(ctx, func() (string, error) { return "", keyring.Set(service, name, secret) })
	return err
}

// Delete deletes a secret. Its error is [ErrNotFound] if the secret does not exist.
func Delete(ctx context.Context, name string) error {
	_, err := access(ctx, func() (string, error) { return "", keyring.Delete(service, name) })
	return err
}

// access calls operation, which uses the keyring. It gives up after the time that the const patience sets, or when ctx ends.
func access(ctx context.Context, operation func() (string, error)) (string, error) {
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
	go func() { // ends when operation returns, which cannot be cancelled
		secret, err := operation()
		done <- outcome{secret, err}
	}()
	select {
	case o := <-done:
		if o.err != nil && !errors.Is(o.err, ErrNotFound) {
			return "", fmt.Errorf("the keyring of the system: %w", o.err)
		}
		return o.secret, o.err
	case <-ctx.Done():
		return "", fmt.Errorf("the keyring of the system does not respond: %w", ctx.Err())
	}
}

// startNoBus keeps the D-Bus library from starting a message bus (dbus-launch) if none runs. Such a bus would never end.
func startNoBus() {
	const variable = "DBUS_SESSION_BUS_ADDRESS"
	address := os.Getenv(variable)
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" || address != "" && address != "autolaunch:" {
		return
	}
	folder := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, name := range []string{"bus", "dbus-session"} { // the socket names that the library tries
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return
		}
	}
	_ = os.Setenv(variable, "unix:path="+filepath.Join(folder, "bus")) // fails only for invalid names or values
}
