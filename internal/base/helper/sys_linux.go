package helper

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// dataSlack is what a helper may map beyond its memory limit and what it has mapped at the
// start. The guards that look at sizes, whose end has a clear error, are then first.
const dataSlack = 16 << 20

// bindProcess lets the kernel refuse memory far beyond the limit (the runtime then ends
// the process), names the helper in ps, and makes it the kernel's first choice when the
// machine runs out of memory. What does not work here is left to the other guards.
func bindProcess(name string, memory int64) {
	// Not prctl(PR_SET_NAME), which is for the calling thread: ps shows the first.
	os.WriteFile("/proc/self/comm", []byte(name), 0)
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	// RLIMIT_AS would count what the runtime reserves and never uses, over a gigabyte.
	// RLIMIT_DATA counts private writable pages, which is what it does use.
	if mapped := statm(os.Getpid(), 5); mapped > 0 && !raceEnabled {
		limit := uint64(mapped + memory + dataSlack)
		unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
	}
}

// resident is the resident size of a process in bytes, 0 when unknown.
func resident(pid int) int64 { return statm(pid, 1) }

// statm returns a field of /proc/PID/statm (proc_pid_statm(5)) in bytes, 0 when unknown.
func statm(pid, field int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(data)
	if err != nil || len(fields) <= field {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[field]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
