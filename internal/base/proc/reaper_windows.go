package proc

import (
	"crypto/rand"
	"os"
)

// Reaper does nothing on Windows: each child is in a job object that ends with us.
type Reaper struct{}

// NewReaper returns a reaper.
func NewReaper() *Reaper { return &Reaper{} }

// Close does nothing on Windows.
func (r *Reaper) Close() error { return nil }

// ReaperMain does nothing on Windows.
func ReaperMain() {}

func (r *Reaper) mark() string { return rand.Text() + "." }

func (r *Reaper) launch(start func() (*os.Process, error)) (*os.Process, error) { return start() }

func (r *Reaper) forget(int) {}

func (r *Reaper) reaped(int) {}

// DropFilePages does nothing here.
func DropFilePages() {}
