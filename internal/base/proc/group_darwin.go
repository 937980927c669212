package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB, sys/proc.h

// watch returns when the child has ended, without reaping it. It does not use waitid, which on darwin also returns
// when the child was stopped.
func (g *group) watch() {
	kq, err := unix.Kqueue()
	for ; err != nil; kq, err = unix.Kqueue() { // retry until a file descriptor is free
		<-time.After(pollMax)
	}
	defer unix.Close(kq)
	var ev unix.Kevent_t
	unix.SetKevent(&ev, g.id, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev.Fflags = unix.NOTE_EXIT
	out := make([]unix.Kevent_t, 1)
	for {
		// If the child has ended already, the error is ESRCH.
		if _, err := unix.Kevent(kq, []unix.Kevent_t{ev}, out, nil); err != unix.EINTR {
			return
		}
	}
}

// members returns the processes of the process group, including zombies.
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

// signalMember is never called on darwin: members returns only processes of the process group, which group.signal
// reaches.
func signalMember(member, unix.Signal) {}

// stillRuns always returns false, so that the method alive lists the group again, which is cheap on darwin.
func stillRuns(member) bool { return false }

// born returns 0: the start time is needed only on Linux, where processes are found by their mark.
func born(int) uint64 { return 0 }
