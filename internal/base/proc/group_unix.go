//go:build linux || darwin

package proc

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const sigKill = unix.SIGKILL

// group is a child's process group and session, which have its pid as their number. Its
// methods may be called only until the child is reaped.
type group struct {
	id   int
	mark string
	born uint64 // when the child was started, in the unit of member.born

	seen []member // what alive found last
}

// member is one live process of a group.
type member struct {
	pid, parent, group, session int
	state                       byte
	born                        uint64
	cpu                         uint64 // what it and its reaped children have used; 0 where that is not known
}

// sysProcAttr makes the child lead a session: see the package comment.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

func newGroup(p *os.Process, mark string) (*group, error) {
	return &group{id: p.Pid, mark: mark, born: born(p.Pid)}, nil
}

// work changes with the processes of the group, and where the system tells with the
// processor time that they have used.
func (g *group) work() (sum uint64) {
	for _, m := range g.members() {
		sum += m.cpu + uint64(m.pid)<<40
	}
	return sum
}

// signal reaches the process group at once, and nothing else.
func (g *group) signal(sig unix.Signal) { unix.Kill(-g.id, sig) }

// terminate asks everything of the group to end. Stopped processes are woken, or they
// could not.
func (g *group) terminate() {
	g.signal(unix.SIGTERM)
	g.signal(unix.SIGCONT)
	g.signalOthers(unix.SIGTERM)
}

// kill sends KILL to everything of the group that can be found.
func (g *group) kill() {
	g.signal(unix.SIGKILL)
	g.signalOthers(unix.SIGKILL)
	g.signal(unix.SIGKILL)
}

// signalOthers reaches what belongs to the group and is not in the process group.
func (g *group) signalOthers(sig unix.Signal) {
	for _, m := range g.members() {
		if m.group != g.id {
			signalMember(m, sig)
		}
	}
}

// alive reports whether anything of the group can still run. Zombies cannot. It is
// asked again and again, so it begins with those it found the last time: one that still
// lives spares the look at every process of the machine.
func (g *group) alive() bool {
	runs := func(m member) bool { return m.state != zombie }
	if slices.ContainsFunc(g.seen, func(m member) bool { return runs(m) && stillRuns(m) }) {
		return true
	}
	g.seen = g.members()
	return slices.ContainsFunc(g.seen, runs)
}

// reapAdopted reaps the group's zombies that were orphaned and became our children:
// nobody else does where we are the init process of a container. The child itself is
// still a zombie, so the numbers are certain.
func (g *group) reapAdopted() {
	for _, m := range g.members() {
		if m.state == zombie && m.pid != g.id && m.parent == os.Getpid() {
			unix.Wait4(m.pid, nil, unix.WNOHANG, nil)
		}
	}
}

// release gives back what a group holds; there is nothing on unix.
func (g *group) release() {}
