package keyring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// TestGet_NoBus: if no message bus is running, Get returns an error and does not start one.
func TestGet_NoBus(t *testing.T) {
	if _, err := os.Stat(filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "bus")); runtime.GOOS != "linux" || err == nil {
		t.Skip("this system has a message bus, or needs none")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dbus-launch"), []byte("#!/bin/sh\ntouch "+dir+"/launched\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	if _, err := Get(context.Background(), "anything"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "launched")); err == nil {
		t.Error("a message bus was started")
	}
}

// TestAccess_Ends: if the keyring hangs, access returns when its context ends.
func TestAccess_Ends(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	defer close(release)
	_, err := access(ctx, func() (string, error) {
		cancel()
		<-release
		return "", nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestAccess_Off: with MCPX_KEYRING=off, the keyring is not used.
func TestAccess_Off(t *testing.T) {
	t.Setenv("MCPX_KEYRING", "off")
	if err := Set(context.Background(), "name", "value"); !errors.Is(err, errOff) {
		t.Errorf("got %v", err)
	}
}
