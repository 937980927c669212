package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// install makes a peer ready and returns its folder, which is below cache. For the peer called direct, which is no gateway, dir is
// empty. A peer that comes from a registry is installed only if it is not in cache yet. mcpx is built each time.
func install(ctx context.Context, p *peer, cache, module string) (dir string, err error) {
	dir = filepath.Join(cache, "peers", strings.NewReplacer(" ", "-", "(", "", ")", "").Replace(p.name)+"-"+p.version)
	done := filepath.Join(dir, "installed")
	switch p.registry {
	case "none":
		return "", nil
	case "this repository":
		dir = filepath.Join(cache, "built")
		return dir, command(ctx, module, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "mcpx"), "./cmd/mcpx")
	}
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	switch p.registry {
	case "npm":
		err = command(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", dir, p.pkg+"@"+p.version)
	case "PyPI":
		if err = command(ctx, dir, "python3", "-m", "venv", dir); err == nil {
			err = command(ctx, dir, filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check",
				p.pkg+"=="+p.version)
		}
	case "Go":
		err = command(ctx, dir, "env", "GOBIN="+dir, "go", "install", p.pkg+"@v"+p.version)
	default:
		err = errors.New("no registry of the name " + p.registry)
	}
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(done, []byte(p.version+"\n"), 0o644)
}

func command(ctx context.Context, dir string, argv ...string) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}
