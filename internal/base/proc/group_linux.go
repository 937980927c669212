package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const zombie = 'Z'

// watch returns when the child has ended, without reaping it.
func (g *group) watch() {
	for unix.Waitid(unix.P_PID, g.id, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// members finds the processes of the group in /proc: those in the child's session, and those whose environment contains the child's
// mark (see markVar). Without /proc it finds none; then only the process group gets signals.
func (g *group) members() []member {
	return find(func(m member) bool {
		return m.session == g.id || m.born >= g.born && carries(m.pid, g.mark)
	})
}

// signalMember signals one process, unless its id now belongs to another process.
func signalMember(m member, sig unix.Signal) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// A pidfd always refers to the same process. That process is m if its start time is still the same.
	if now, ok := readMember(m.pid, make([]byte, 1024)); ok && now.born == m.born {
		unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// born returns the start time of a process in clock ticks since boot, or 0 if it cannot be read.
func born(pid int) uint64 {
	m, _ := readMember(pid, make([]byte, 1024))
	return m.born
}

// stillRuns reports whether m, which was found earlier, still runs.
func stillRuns(m member) bool {
	now, ok := readMember(m.pid, make([]byte, 1024))
	return ok && now.born == m.born && now.state != zombie
}

// find returns the processes of this machine for which belongs returns true.
func find(belongs func(member) bool) []member {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var found []member
	buf := make([]byte, 1024)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if m, ok := readMember(pid, buf); ok && belongs(m) {
			found = append(found, m)
		}
	}
	return found
}

func readMember(pid int, buf []byte) (member, bool) {
	line, ok := readProc(pid, "stat", buf)
	if !ok {
		return member{}, false
	}
	f := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(f) < 20 {
		return member{}, false
	}
	num := func(i int) int {
		n, _ := strconv.Atoi(string(f[i]))
		return n
	}
	start, _ := strconv.ParseUint(string(f[19]), 10, 64)
	cpu := uint64(0)
	for i := 11; i < 15; i++ { // utime, stime, cutime, cstime
		cpu += uint64(num(i))
	}
	return member{
		pid: pid, state: f[0][0],
		parent: num(1), group: num(2), session: num(3), born: start, cpu: cpu,
	}, true
}

// carries reports whether the environment of a process contains markVar with a value that begins with mark.
func carries(pid int, mark string) bool {
	env, ok := readProc(pid, "environ", make([]byte, 4096))
	if !ok {
		return false
	}
	entry := []byte(markVar + "=" + mark)
	return bytes.HasPrefix(env, entry) || bytes.Contains(env, append([]byte{0}, entry...))
}

// readProc reads a file of a process in /proc. It uses plain system calls, because it is called often, and also in the
// reaper, which must stay small. It reads into buf if buf is large enough.
func readProc(pid int, file string, buf []byte) ([]byte, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	n := 0
	for {
		if n == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
		k, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, false
		case k == 0:
			return buf[:n], true
		default:
			n += k
		}
	}
}
