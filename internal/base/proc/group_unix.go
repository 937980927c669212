//go:build linux || darwin

package proc

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const sigKill = unix.SIGKILL

// group is a child and those of its descendants that can be found: the members. The child leads a process group and a session, whose
// ids are both the child's pid. On Linux, members are found even after they have left both. The methods must not be
// called after the child was reaped.
type group struct {
	id   int
	mark string
	born uint64 // start time of the child, in the unit of member.born

	seen []member // the members that the last call of alive found
}

// member is a process that belongs to a group. The fields group and session are the ids of its process group and its session.
type member struct {
	pid, parent, group, session int
	state                       byte
	born                        uint64
	cpu                         uint64 // CPU time of the process and its reaped children, in clock ticks; 0 if unknown
}

// sysProcAttr makes the child the leader of a new session, so that it gets no signals from the terminal.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

func newGroup(p *os.Process, mark string) (*group, error) {
	return &group{id: p.Pid, mark: mark, born: born(p.Pid)}, nil
}

// work returns a number that changes when members start or end and, on Linux, when members use CPU time.
func (g *group) work() (sum uint64) {
	for _, m := range g.members() {
		sum += m.cpu + uint64(m.pid)<<40
	}
	return sum
}

// signal sends sig to the child's process group, not to members that have left the process group.
func (g *group) signal(sig unix.Signal) { unix.Kill(-g.id, sig) }

// terminate sends TERM to all members. It also sends CONT to the child's process group, since a stopped process cannot handle TERM.
func (g *group) terminate() {
	g.signal(unix.SIGTERM)
	g.signal(unix.SIGCONT)
	g.signalOthers(unix.SIGTERM)
}

// kill sends KILL to all members.
func (g *group) kill() {
	g.signal(unix.SIGKILL)
	g.signalOthers(unix.SIGKILL)
	g.signal(unix.SIGKILL)
}

// signalOthers sends sig to the members that have left the child's process group.
func (g *group) signalOthers(sig unix.Signal) {
	for _, m := range g.members() {
		if m.group != g.id {
			signalMember(m, sig)
		}
	}
}

// alive reports whether any member still runs; a zombie does not run. Since alive is called in a loop, it first checks the members that
// the last call found. If one of them still runs, alive need not search all processes of the machine.
func (g *group) alive() bool {
	runs := func(m member) bool { return m.state != zombie }
	if slices.ContainsFunc(g.seen, func(m member) bool { return runs(m) && stillRuns(m) }) {
		return true
	}
	g.seen = g.members()
	return slices.ContainsFunc(g.seen, runs)
}

// reapAdopted reaps zombies among the members that became children of this process. That happens only if this process is the init
// process of a container. The child itself is not reaped yet, so the group's id has not been reused.
func (g *group) reapAdopted() {
	for _, m := range g.members() {
		if m.state == zombie && m.pid != g.id && m.parent == os.Getpid() {
			unix.Wait4(m.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// release frees the resources of a group; there are none on unix.
func (g *group) release() {}

// withUmask sets the umask; restore sets the old umask again. The umask belongs to the whole process, so only one child starts at a
// time: the caller holds r.starting. Other goroutines may create files at that moment. These files get explicit modes, so the umask
// of a child does not open them to others.
func (r *Reaper) withUmask(mask *int) (restore func()) {
	if r == nil || mask == nil {
		return func() {}
	}
	before := syscall.Umask(*mask)
	return func() { syscall.Umask(before) }
}
