package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// sigKill is the only signal that a job object supports.
const sigKill = syscall.SIGKILL

// group is a job object, which contains the child and everything that the child starts. This process holds its only handle. When
// the handle is closed, also because this process is killed, Windows ends all processes of the job.
type group struct {
	pid  int
	proc *os.Process
	job  windows.Handle
}

// sysProcAttr starts the child suspended, so that the child cannot start anything before it is in its job. The child
// gets its own console group, so that CTRL_BREAK can be sent to this child only.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
	}
}

// newGroup puts a suspended child into a job and resumes it. If that fails, newGroup kills the child.
func newGroup(p *os.Process, _ string) (*group, error) {
	g := &group{pid: p.Pid, proc: p}
	err := g.enclose()
	if err == nil {
		err = resume(p.Pid)
	}
	if err != nil {
		p.Kill()
		p.Wait()
		g.release()
		return nil, err
	}
	return g, nil
}

// enclose creates the job and adds the child.
func (g *group) enclose() error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("creating a job object: %w", err)
	}
	g.job = job
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return fmt.Errorf("configuring a job object: %w", err)
	}
	assignErr := errors.New("no handle")
	err = g.proc.WithHandle(func(h uintptr) {
		assignErr = windows.AssignProcessToJobObject(job, windows.Handle(h))
	})
	if err = errors.Join(err, assignErr); err != nil {
		return fmt.Errorf("assigning to a job object: %w", err)
	}
	return nil
}

// resume resumes the only thread of a suspended process.
func resume(pid int) error {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("listing threads: %w", err)
	}
	defer windows.CloseHandle(snap)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snap, &entry); err == nil; err = windows.Thread32Next(snap, &entry) {
		if int(entry.OwnerProcessID) != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("opening the first thread: %w", err)
		}
		defer windows.CloseHandle(thread)
		if _, err := windows.ResumeThread(thread); err != nil {
			return fmt.Errorf("resuming the first thread: %w", err)
		}
		return nil
	}
	return fmt.Errorf("finding the first thread: %w", err)
}

// watch returns when the child has ended. The child's process id is not reused before Wait, because g.proc holds a
// handle.
func (g *group) watch() {
	g.proc.WithHandle(func(h uintptr) {
		windows.WaitForSingleObject(windows.Handle(h), windows.INFINITE)
	})
}

// signal ends all processes of the job.
func (g *group) signal(syscall.Signal) { windows.TerminateJobObject(g.job, 1) }

func (g *group) kill() { g.signal(sigKill) }

// terminate sends CTRL_BREAK, which console programs can handle. If this process has no console, nothing is sent, and Close only
// waits for Grace.TERM.
func (g *group) terminate() {
	windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.pid))
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION (winnt.h).
type accounting struct {
	totalUserTime, totalKernelTime           int64
	thisPeriodUserTime, thisPeriodKernelTime int64
	totalPageFaultCount                      uint32
	totalProcesses                           uint32
	activeProcesses                          uint32
	totalTerminatedProcesses                 uint32
}

// accounts returns the accounting of the job, or zeros if that fails.
func (g *group) accounts() (info accounting) {
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	if err != nil {
		return accounting{}
	}
	return info
}

// alive reports whether the job has a running process.
func (g *group) alive() bool { return g.accounts().activeProcesses > 0 }

// work returns a number that changes when the processes of the job change or use CPU time.
func (g *group) work() uint64 {
	info := g.accounts()
	return uint64(info.totalUserTime+info.totalKernelTime) + uint64(info.totalProcesses)<<40 + uint64(info.totalTerminatedProcesses)<<52
}

// reapAdopted does nothing, as Windows has no zombies.
func (g *group) reapAdopted() {}

// release closes the job. The child must have been reaped before.
func (g *group) release() {
	if g.job != 0 {
		windows.CloseHandle(g.job)
		g.job = 0
	}
}
