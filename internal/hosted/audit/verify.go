package audit

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// Report is the result of [Verify].
type Report struct {
	Files []string
	Lines uint64
	// First and Last are numbers of lines. MAC is the HMAC of the last line: a copy of MAC and Last, kept elsewhere,
	// reveals later whether lines were cut from the end.
	First, Last uint64
	MAC         string
	Chained     bool
	// Lost is the number of records that could not be written, Open of calls without an end, Unclosed of runs without
	// an end. One of these runs may be still active.
	Lost     uint64
	Open     int
	Unclosed int
	// Cut is the number of incomplete lines that were cut off when the next run started.
	Cut    int
	Faults []Fault
}

// Fault is a place where the trail is not as it was written.
type Fault struct {
	File string
	Line int // from 1
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

const maxFaults = 100

// ErrNeedsKey: the lines have HMACs, but no key was given.
var ErrNeedsKey = errors.New("the lines have HMACs, which only the key can check")

// Verify reads a trail with all its renamed files. key is empty for a trail without HMACs.
func Verify(path string, key []byte) (*Report, error) {
	v := &verifier{key: key, calls: make(map[call]bool), runs: make(map[string]bool)}
	if len(key) > 0 {
		v.chain = hmac.New(sha256.New, key)
	}
	// The newest file is opened first: if it is rotated now, it is found among the parts.
	newest, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer newest.Close()
	before, err := parts(path)
	if err != nil {
		return nil, err
	}
	for _, p := range before {
		file, err := os.Open(p.path)
		if err != nil {
			return nil, err
		}
		if same(file, newest) {
			file.Close()
			break
		}
		err = v.read(p.path, file)
		file.Close()
		if err != nil {
			return nil, err
		}
	}
	if err := v.read(path, newest); err != nil {
		return nil, err
	}
	v.report.Open, v.report.Unclosed, v.report.MAC = len(v.calls), len(v.runs), v.mac
	return &v.report, nil
}

func same(a, b *os.File) bool {
	one, err := a.Stat()
	two, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(one, two)
}

type call struct {
	run    string
	number uint64
}

type verifier struct {
	key    []byte
	chain  hash.Hash
	report Report
	mac    string // of the last line
	calls  map[call]bool
	runs   map[string]bool
}

func (v *verifier) read(path string, file *os.File) error {
	v.report.Files = append(v.report.Files, path)
	in := bufio.NewReaderSize(file, 2*maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		fault := func(format string, args ...any) {
			if len(v.report.Faults) < maxFaults {
				v.report.Faults = append(v.report.Faults, Fault{path, n, fmt.Sprintf(format, args...)})
			}
		}
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case errors.Is(err, io.EOF):
			fault("the line is incomplete")
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			fault("the line is longer than any that mcpx writes")
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if err := v.line(bytes.TrimSuffix(line, []byte("\n")), fault); err != nil {
			return err
		}
	}
}

func (v *verifier) line(line []byte, fault func(string, ...any)) error {
	h, ok := readHead(line)
	if !ok {
		fault("the line is not of an audit trail: it was changed or inserted")
		return nil
	}
	r := &v.report
	first := r.Lines == 0
	r.Lines++
	switch {
	case first:
		r.First = h.Seq
	case h.Seq == r.Last+2:
		fault("line number %d is missing before it", r.Last+1)
	case h.Seq > r.Last+1:
		fault("lines number %d to %d are missing before it", r.Last+1, h.Seq-1)
	case h.Seq <= r.Last:
		fault("its number is %d, and the one before it had %d: lines were inserted, repeated or reordered", h.Seq, r.Last)
	}
	gap := !first && h.Seq != r.Last+1
	r.Last = max(r.Last, h.Seq)
	if err := v.sealed(line, h, first, gap, fault); err != nil {
		return err
	}
	v.count(h)
	return nil
}

func (v *verifier) sealed(line []byte, h head, first, gap bool, fault func(string, ...any)) error {
	if h.MAC != "" {
		v.report.Chained = true
	}
	switch {
	case v.chain == nil && h.MAC != "":
		return ErrNeedsKey
	case v.chain == nil:
		return nil
	case h.MAC == "":
		fault("the line has no HMAC: it was changed or inserted, or written without the key")
	case !fits(v.chain, line):
		fault("the line was changed, or written with another key")
	case h.Prev != v.mac && !gap && !(first && h.Seq > 1):
		fault("the line before it is not the one that was written there")
	}
	v.mac = h.MAC
	return nil
}

func (v *verifier) count(h head) {
	switch h.Event {
	case opened:
		v.runs[h.Run] = true
		if h.Cut > 0 {
			v.report.Cut++
		}
	case closed:
		delete(v.runs, h.Run)
	case lost:
		v.report.Lost += h.Records
	case CallBegan:
		v.calls[call{h.Run, h.Call}] = true
	case CallEnded:
		delete(v.calls, call{h.Run, h.Call})
	}
}

// The events of calls, from package app. Both have the number of the call in this run in the member call.
const (
	CallBegan = "call_began"
	CallEnded = "call_ended"
)
