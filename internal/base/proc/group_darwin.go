package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB, sys/proc.h

// watch returns when the child has ended. It leaves the zombie in place. (waitid would
// do so too, but on darwin it also returns for a child that was stopped.)
func (g *group) watch() {
	kq, err := unix.Kqueue()
	if err != nil {
		g.pollExit()
		return
	}
	defer unix.Close(kq)
	var ev unix.Kevent_t
	unix.SetKevent(&ev, g.id, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev.Fflags = unix.NOTE_EXIT
	out := make([]unix.Kevent_t, 1)
	for {
		// A child that has ended already is refused with ESRCH: that is an answer too.
		if _, err := unix.Kevent(kq, []unix.Kevent_t{ev}, out, nil); err != unix.EINTR {
			return
		}
	}
}

// pollExit stands in for watch when there are no descriptors left for a queue.
func (g *group) pollExit() {
	for {
		<-time.After(pollMost)
		for _, m := range g.members() {
			if m.pid == g.id && m.state == zombie {
				return
			}
		}
	}
}

// members lists the process group, the zombies included.
func (g *group) members() []member {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", g.id)
	if err != nil {
		return nil
	}
	found := make([]member, 0, len(infos))
	for _, k := range infos {
		found = append(found, member{
			pid:    int(k.Proc.P_pid),
			parent: int(k.Eproc.Ppid),
			group:  int(k.Eproc.Pgid),
			state:  byte(k.Proc.P_stat),
		})
	}
	return found
}

// signalMember is never needed here: all members are in the group.
func signalMember(member, unix.Signal) {}

// stillRuns leaves it to a new look, which is cheap here.
func stillRuns(member) bool { return false }

// born is only of use where processes are found by their mark.
func born(int) uint64 { return 0 }
