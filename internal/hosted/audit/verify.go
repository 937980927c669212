package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// Report is what [Verify] has found in a trail.
type Report struct {
	Files []string
	Lines uint64
	// First and Last are the numbers of the first and the last line, and MAC is the HMAC of the last line. An operator who keeps a
	// copy of Last and MAC elsewhere can tell later whether lines were removed from the end.
	First, Last uint64
	MAC         string
	Chained     bool
	// Lost is the number of records that could not be written. Open is the number of calls whose end is not in the trail. Unclosed
	// is the number of processes that opened the trail and did not close it. One of them may still be writing.
	Lost     uint64
	Open     int
	Unclosed int
	// Cut is how many times a process found an incomplete last line when it opened the trail, and removed it.
	Cut int
	// Anchored is true if there is an anchor that could be used.
	Anchored bool
	Faults   []Fault
}

// Fault is a place that shows that the trail was changed after it was written, or says that its anchor cannot be used.
type Fault struct {
	File string
	Line int // line number in File, starting at 1
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

const maxFaults = 100

// ErrNeedsKey is returned if the lines have HMACs, but no key was given.
var ErrNeedsKey = errors.New("the lines have HMACs, which only the key can check")

// Verify reads a trail with all its renamed files, and checks it. keys is empty for a trail without HMACs. Otherwise each line must
// have been written with one of the keys, of which the newest comes first. Without an anchor, Verify does not find out that lines
// at the end were removed, and every missing line at the beginning is a fault, even one that Options.Keep has removed. It is an
// error if [Forget] was interrupted and has not been completed.
func Verify(path string, keys [][]byte, anchorPath string) (*Report, error) {
	if err := betweenStates(path); err != nil {
		return nil, err
	}
	return check(path, keys, anchorPath)
}

func check(path string, keys [][]byte, anchorPath string) (*Report, error) {
	// The anchor is read before the trail, so every line that it names must be in the trail.
	reached, unusable := readAnchor(anchorPath, keys)
	v := &verifier{chains: chainsOf(keys), keyed: len(keys), calls: make(map[call]bool), runs: make(map[string]bool)}
	v.anchor, v.place = reached, Fault{File: path, Line: 1}
	if err := v.files(path); err != nil {
		return nil, err
	}
	// The anchor is read again, because Options.Keep may have removed a file meanwhile.
	from, err := readAnchor(anchorPath, keys)
	v.ends(from, errors.Join(unusable, err), anchorPath)
	v.report.Open, v.report.Unclosed, v.report.MAC = len(v.calls), len(v.runs), v.mac
	return &v.report, nil
}

// files reads the renamed files and then the newest file. The newest file may be missing if there are renamed files or an anchor.
// Without an anchor, its absence is a fault; with one, the method ends finds out whether lines are missing.
func (v *verifier) files(path string) error {
	// The newest file is opened first. If it is renamed after that, it is still recognized among the renamed files.
	newest, missing := os.Open(path)
	if missing == nil {
		defer newest.Close()
	}
	before, err := parts(path)
	if err != nil {
		return err
	}
	if missing != nil && (!errors.Is(missing, os.ErrNotExist) || len(before) == 0 && v.anchor == nil) {
		return missing
	}
	for _, p := range before {
		file, err := os.Open(p.path)
		if err != nil {
			return err
		}
		if missing == nil && same(file, newest) {
			file.Close()
			break
		}
		err = v.read(p.path, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	if missing == nil {
		return v.read(path, newest)
	}
	v.place = Fault{File: path, Line: 1}
	if v.anchor == nil {
		v.fault("the newest file is gone")
	}
	return nil
}

// ends compares the last line of the trail with v.anchor, which was read before the trail, and the first line with from. from is
// the anchor, read again after the trail if another process may have written meanwhile; it is nil if there is none. unusable says
// why the anchor cannot be used; it is nil if it can.
func (v *verifier) ends(from *anchor, unusable error, anchorPath string) {
	r := &v.report
	r.Anchored = from != nil
	if unusable != nil {
		v.fault("the anchor %s cannot be used: %v", anchorPath, unusable)
	}
	if reached := v.anchor; reached != nil && reached.Last > r.Last {
		v.fault("lines number %d to %d are missing after it, by the anchor", r.Last+1, reached.Last)
	}
	v.place = v.first
	switch {
	case r.First <= 1:
	case from == nil:
		v.fault("lines number 1 to %d are missing before it, and no anchor says that audit.keep removed them", r.First-1)
	case r.First > from.First:
		v.fault("lines number %d to %d are missing before it, by the anchor", from.First, r.First-1)
	}
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
	chains []hash.Hash
	keyed  int // the index of the newest key that has made a line so far; at first the number of keys
	report Report
	// each is called with each line of the trail; it may be nil. unkeyed means that HMACs are not checked, because there is no key.
	each    func(line []byte)
	unkeyed bool
	mac     string // HMAC of the last line
	calls   map[call]bool
	runs    map[string]bool
	anchor  *anchor // nil if there is no anchor
	// place is the place of the line that was read last, and first is the place of the first line.
	place, first Fault
}

// fault adds a fault whose place is the line that was read last.
func (v *verifier) fault(format string, args ...any) {
	if len(v.report.Faults) < maxFaults {
		v.place.Text = fmt.Sprintf(format, args...)
		v.report.Faults = append(v.report.Faults, v.place)
	}
}

func (v *verifier) read(path string, file *os.File) error {
	v.report.Files = append(v.report.Files, path)
	in := bufio.NewReaderSize(file, 2*maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		v.place = Fault{File: path, Line: n}
		switch {
		case errors.Is(err, io.EOF):
			v.fault("the line is incomplete")
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			v.fault("the line is longer than any that mcpx writes")
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if err := v.line(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
	}
}

func (v *verifier) line(line []byte) error {
	h, ok := readHead(line)
	if !ok {
		v.fault("the line is not of an audit trail: it was changed or inserted")
		return nil
	}
	r := &v.report
	first := r.Lines == 0
	r.Lines++
	switch {
	case first:
		r.First, v.first = h.Seq, v.place
	case h.Seq == r.Last+2:
		v.fault("line number %d is missing before it", r.Last+1)
	case h.Seq > r.Last+1:
		v.fault("lines number %d to %d are missing before it", r.Last+1, h.Seq-1)
	case h.Seq <= r.Last:
		v.fault("its number is %d, and the one before it had %d: lines were inserted, repeated or reordered", h.Seq, r.Last)
	}
	gap := !first && h.Seq != r.Last+1
	r.Last = max(r.Last, h.Seq)
	if err := v.sealed(line, h, first, gap); err != nil {
		return err
	}
	v.count(h)
	if v.each != nil {
		v.each(line)
	}
	return nil
}

func (v *verifier) sealed(line []byte, h head, first, gap bool) error {
	if h.MAC != "" {
		v.report.Chained = true
	}
	with := fits(v.chains, line)
	switch {
	case v.unkeyed:
		return nil
	case v.chains == nil && h.MAC != "":
		return ErrNeedsKey
	case v.chains == nil:
		return nil
	case h.MAC == "":
		v.fault("the line has no HMAC: it was changed or inserted, or written without the key")
	case with < 0:
		v.fault("the line was changed, or written with another key")
	case with > v.keyed: // otherwise a thief of an old key could append lines
		v.fault("the line was written with an older key than the line before it")
	case h.Prev != v.mac && !gap && !(first && h.Seq > 1):
		v.fault("the line before it is not the one that was written there")
	}
	if a := v.anchor; a != nil && a.Last == h.Seq && a.MAC != h.MAC {
		v.fault("the line is not the one that the anchor names")
	}
	if v.mac = h.MAC; with >= 0 {
		v.keyed = min(v.keyed, with)
	}
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
