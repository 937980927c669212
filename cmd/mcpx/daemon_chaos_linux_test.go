package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// chaos is the state of TestDaemon_Chaos.
type chaos struct {
	home   *home
	config string
	specs  []mcptest.Spec
	stop   chan struct{}

	mu                      sync.Mutex
	kills                   []time.Time // when daemons were killed
	answered, lost, servers int
}

// TestDaemon_Chaos: ten sessions a second come and go, with commands between them, while servers and the daemon are killed and
// stopped again and again. A session gets all its answers, unless its daemon is killed; then it ends with a line that says so.
// None hangs, and no process is left. It takes 10 s in a full run, or as long as MCPX_SOAK says.
func TestDaemon_Chaos(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("MCPX_SOAK"))
	if err != nil {
		lasts = 10 * time.Second
		if !mcptest.Full {
			t.Skip("takes half a minute")
		}
	}
	binary(t)
	c := &chaos{home: newDaemonHome(t), stop: make(chan struct{})}
	servers := make(map[string]server)
	for _, name := range []string{"shared", "own"} {
		spec := mcptest.Spec{ForkGrandchild: true, MaxLife: lasts + time.Hour}.WithFiles(t)
		c.specs, servers[name] = append(c.specs, spec), fake(t, spec)
	}
	servers["shared"]["share"] = "user"
	c.config = c.home.config(t, servers, map[string]any{"daemon_idle": 1})
	var all, killing sync.WaitGroup
	killing.Go(func() { c.kill(t) })  // ends with stop
	places := make(chan struct{}, 30) // on a busy machine sessions must not pile up
	for end, i := time.Now().Add(lasts), 0; time.Now().Before(end); i++ {
		places <- struct{}{}
		all.Go(func() { // ends with its session or command
			defer func() { <-places }()
			if i%10 == 9 {
				c.command(t, i)
			} else {
				c.session(t, i)
			}
		})
		time.Sleep(100 * time.Millisecond)
	}
	all.Wait()
	close(c.stop)
	killing.Wait()
	t.Logf("%d sessions and commands were answered, %d ended with their daemon; %d daemons and %d servers were killed",
		c.answered, c.lost, len(c.kills), c.servers)
	mcptest.WaitFor(t, "the end of the daemon", patience, func() bool { return len(c.home.daemons(t)) == 0 })
	for _, spec := range c.specs {
		for _, process := range spec.Pids(t) {
			mcptest.WaitFor(t, fmt.Sprintf("the end of %s %d", process.Role, process.PID), patience, func() bool { return !runs(spec, process) })
		}
	}
}

// kill kills servers and daemons, and stops daemons for a second, until stop is closed.
func (c *chaos) kill(t *testing.T) {
	for i := 1; ; i++ {
		select {
		case <-c.stop:
			return
		case <-time.After(500 * time.Millisecond):
		}
		daemons := c.home.daemons(t)
		switch {
		case i%4 != 0:
			c.killServer(t, c.specs[i%2])
		case i%16 == 0: // the daemon is stopped for longer than a new session waits for it
			for _, pid := range daemons {
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
			time.Sleep(time.Second)
			for _, pid := range daemons {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		default:
			c.mu.Lock()
			c.kills = append(c.kills, time.Now())
			c.mu.Unlock()
			for _, pid := range daemons {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// runs reports whether a process of a fake still runs. In a long test its id may by now belong to another process, which the test
// must not kill. So runs also looks at the environment, which only processes of this test have, and at the command line, which
// only fakes have.
func runs(spec mcptest.Spec, process mcptest.Process) bool {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.PID))
	argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process.PID))
	temp := filepath.Dir(filepath.Dir(spec.PidFile)) // the temporary folder of this test
	return bytes.Contains(environ, []byte(temp+"/")) && bytes.Contains(argv, []byte("mcptest-"))
}

// killServer kills a server that runs.
func (c *chaos) killServer(t *testing.T, spec mcptest.Spec) {
	for _, process := range slices.Backward(spec.Pids(t)) {
		if runs(spec, process) {
			_ = syscall.Kill(process.PID, syscall.SIGKILL)
			c.count(&c.servers)
			return
		}
	}
}

func (c *chaos) count(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// ended checks how the session or command i, which began at the time began, has ended. missing is what it got no answer to;
// empty if it got all answers.
func (c *chaos) ended(t *testing.T, i int, began time.Time, missing, stderr string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	killed := len(c.kills) > 0 && c.kills[len(c.kills)-1].After(began.Add(-time.Second))
	switch {
	case missing == "":
		c.answered++
	case err != nil && killed && strings.Contains(stderr, "this session has ended with it"):
		c.lost++
	default:
		t.Errorf("%d: %v, without an answer to %s, a daemon killed %v: %s", i, err, missing, killed, stderr)
	}
}

// start prepares mcpx, which must end in time.
func (c *chaos) start(args ...string) (cmd *exec.Cmd, cancel context.CancelFunc, stderr *strings.Builder) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd = exec.CommandContext(ctx, built.path, append([]string{"--config", c.config}, args...)...)
	stderr = &strings.Builder{}
	cmd.Env, cmd.Dir, cmd.Stderr = append(c.home.env(), "MCPX_DAEMON_WITHIN=500ms"), c.home.dir, stderr
	return cmd, cancel, stderr
}

// command is one mcpx exec. An error of its server, which may be killed, is an answer too.
func (c *chaos) command(t *testing.T, i int) {
	began := time.Now()
	cmd, cancel, stderr := c.start("exec", "shared", "echo", "text=up")
	defer cancel()
	out, err := cmd.Output()
	missing := ""
	if len(out) == 0 && !strings.Contains(stderr.String(), "shared") {
		missing = "mcpx exec"
	}
	c.ended(t, i, began, missing, stderr.String(), err)
}

// session opens a session and calls both servers.
func (c *chaos) session(t *testing.T, i int) {
	began := time.Now()
	cmd, cancel, stderr := c.start()
	defer cancel()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Error("starting", err)
		return
	}
	lines := hello + "\n"
	left := make(map[string]bool)
	for id := 10; id < 18; id++ {
		lines += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"exec","arguments":%s}}`,
			id, execArgs([]string{"shared", "own"}[id%2], "echo", `{"text":"up"}`)) + "\n"
		left[fmt.Sprintf(`"id":%d,`, id)] = true
	}
	_, _ = io.WriteString(in, lines) // fails if the session has ended already
	for scan := bufio.NewScanner(out); len(left) > 0 && scan.Scan(); {
		for id := range left {
			if strings.Contains(scan.Text(), id) {
				delete(left, id)
			}
		}
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	missing := ""
	if len(left) > 0 {
		missing = fmt.Sprint(left)
	}
	c.ended(t, i, began, missing, stderr.String(), err)
}
