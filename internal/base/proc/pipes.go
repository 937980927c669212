package proc

import (
	"errors"
	"io"
	"os"
	"sync"
)

// pipes are the three pipes of a child; [0] is the end to read from.
type pipes struct {
	stdin, stdout, stderr [2]*os.File
}

func newPipes() (*pipes, error) {
	p := new(pipes)
	for _, ends := range []*[2]*os.File{&p.stdin, &p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeChild()
			p.closeParent()
			return nil, err
		}
		ends[0], ends[1] = r, w
	}
	return p, nil
}

// child is the child's ends in the order of their descriptors.
func (p *pipes) child() []*os.File {
	return []*os.File{p.stdin[0], p.stdout[1], p.stderr[1]}
}

func (p *pipes) closeChild()  { closeAll(p.child()) }
func (p *pipes) closeParent() { closeAll([]*os.File{p.stdin[1], p.stdout[0], p.stderr[0]}) }

// closeAll closes what was opened; (*os.File)(nil).Close is an error and no more.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// input is our end of a child's stdin.
type input struct {
	f    *os.File
	once sync.Once
	err  error
	try  trier
}

// Write writes b as a whole unless Close interrupts it.
func (i *input) Write(b []byte) (int, error) { return i.f.Write(b) }

// Close gives the child its EOF and frees a stuck Write. Calls after the first return
// what that did.
func (i *input) Close() error {
	i.once.Do(func() { i.err = i.f.Close() })
	return i.err
}

// output is our end of a child's stdout or stderr. Its descriptor is closed at its end
// without help from whoever reads.
type output struct {
	f     *os.File
	once  sync.Once
	ended chan struct{} // closed with the descriptor
}

func newOutput(f *os.File) *output {
	return &output{f: f, ended: make(chan struct{})}
}

// Read reads what the child wrote. After its end, and after we cut it off, it is
// io.EOF.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.f.Read(b)
	if err != nil {
		o.end()
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// end closes the descriptor; a Read under way returns.
func (o *output) end() {
	o.once.Do(func() {
		o.f.Close()
		close(o.ended)
	})
}
