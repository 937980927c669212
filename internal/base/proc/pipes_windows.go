package proc

// exhausted cannot be known on Windows; the caller has a timeout.
func (o *output) exhausted() bool { return false }

// trier is empty: Windows has no non-blocking write to a pipe.
type trier struct{}

// TryWrite writes nothing, so the caller uses [input.Write].
func (i *input) TryWrite([]byte) int { return 0 }
