package proc

// exhausted always returns false: on Windows, mcpx does not ask whether a Read would return io.EOF. So the caller waits with a
// timeout.
func (o *output) exhausted() bool { return false }

// trier is empty: Windows has no non-blocking write to a pipe.
type trier struct{}

// TryWrite writes nothing and returns 0, so that the caller uses [input.Write].
func (i *input) TryWrite([]byte) int { return 0 }
