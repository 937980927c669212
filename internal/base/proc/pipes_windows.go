package proc

// exhausted is not known on Windows; whoever waits has a limit.
func (o *output) exhausted() bool { return false }

// trier has nothing: a write to a pipe of Windows cannot be tried.
type trier struct{}

// TryWrite takes nothing: [input.Write] does.
func (i *input) TryWrite([]byte) int { return 0 }
