package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"mcpx/internal/base/proc"
)

// commandTime is the time limit for a command. It allows for commands that ask the user first.
const commandTime = 10 * time.Second

// Run runs a command, without a shell and without input, and returns its output. Its errors name only the program, because the
// arguments and the output may be secret. The parameter environ is the environment of the command; nil means the environment of
// mcpx. The daemon passes the folder and the environment of the session for which it needs the secret: the command runs in this
// folder, and its program is looked up in the PATH of environ. Other callers pass an empty folder.
func Run(ctx context.Context, argv []string, folder string, environ []string) (string, error) {
	program := argv[0]
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		return "", fmt.Errorf("the command %s must be a name on the PATH, or an absolute path", program)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	path := program
	if folder != "" {
		var err error
		if path, err = proc.Lookup(proc.Spec{Command: program, Env: environ}); errors.Is(err, proc.ErrNotFound) {
			return "", fmt.Errorf("there is no command %s on the PATH of this session", program)
		} else if err != nil {
			return "", fmt.Errorf("the command %s could not be started", program)
		}
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir, cmd.Env = folder, environ
	cmd.WaitDelay = time.Second // a child process of the command may keep the output open after the command has ended
	out := &bounded{stop: cancel}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case out.full:
		return "", fmt.Errorf("the command %s prints more than %d KiB", program, MaxBytes>>10)
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command %s did not end within %v", program, commandTime)
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("there is no command %s on the PATH of mcpx", program)
	case err != nil && cmd.ProcessState != nil:
		return "", fmt.Errorf("the command %s failed (%s); run it by hand to see why", program, cmd.ProcessState)
	case err != nil:
		return "", fmt.Errorf("the command %s could not be started", program)
	}
	return out.text.String(), nil
}

// bounded is a buffer for at most MaxBytes bytes. It calls stop if a write would exceed this limit.
type bounded struct {
	text bytes.Buffer // not embedded, because ReadFrom of bytes.Buffer has no limit
	full bool
	stop func()
}

// Write adds p to the buffer. If the buffer would then exceed MaxBytes, Write calls stop instead, and returns an error.
func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > MaxBytes {
		b.full = true
		b.stop()
		return 0, errors.New("too much")
	}
	return b.text.Write(p)
}
