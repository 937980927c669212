package proc

import (
	"crypto/rand"
	"os"
)

// Reaper does nothing on Windows: each child is in a job object, which Windows ends when this process ends.
type Reaper struct{}

func NewReaper() *Reaper { return &Reaper{} }

func (r *Reaper) Close() error { return nil }

func (r *Reaper) mark() string { return rand.Text() + "." }

func (r *Reaper) launch(start func() (*os.Process, error)) (*os.Process, error) { return start() }

func (r *Reaper) forget(int) {}

func (r *Reaper) reaped(int) {}

func DropFilePages() {}

// withUmask does nothing: Windows has no umask.
func (r *Reaper) withUmask(*int) (restore func()) { return func() {} }
