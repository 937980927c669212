package proc

import (
	"errors"
	"io"
	"os"
	"sync"
)

// pipes are the three pipes of a child. Element 0 of each is the read end, element 1 the write end.
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

// child returns the child's ends of the pipes, in the order of the descriptors 0, 1, 2.
func (p *pipes) child() []*os.File {
	return []*os.File{p.stdin[0], p.stdout[1], p.stderr[1]}
}

func (p *pipes) closeChild()  { closeAll(p.child()) }
func (p *pipes) closeParent() { closeAll([]*os.File{p.stdin[1], p.stdout[0], p.stderr[0]}) }

// closeAll closes the files; nil files do no harm.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

type input struct {
	f   *os.File
	try trier
}

// Write writes all of b, unless Close interrupts it.
func (i *input) Write(b []byte) (int, error) { return i.f.Write(b) }

// Close closes stdin, and a blocked Write returns.
func (i *input) Close() error { return i.f.Close() }

// output is the end of a child's stdout or stderr that this process reads. At EOF it closes its descriptor, so readers need not
// close it.
type output struct {
	f     *os.File
	once  sync.Once
	ended chan struct{} // closed together with the descriptor
}

func newOutput(f *os.File) *output {
	return &output{f: f, ended: make(chan struct{})}
}

// Read returns io.EOF at the end of the output, and also after the method end has closed the pipe.
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

// end closes the descriptor. A blocked Read then returns.
func (o *output) end() {
	o.once.Do(func() {
		o.f.Close()
		close(o.ended)
	})
}
