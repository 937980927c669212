package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"mcpx/internal/mcptest"
)

// realServer is a server from npm with its key share, and a tool call that makes the server start.
type realServer struct{ share, name, tool, arguments string }

const (
	thought = `{"thought":"up","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`
	hail    = `{"message":"up"}`
)

// tenServers are ten servers. All sessions share six of them, the sessions in a folder share two, and each session has its own
// process of two. The config sets these shares only for counting: by default, mcpx would not share all of these packages.
var tenServers = []realServer{
	{"user", "memory", "read_graph", `{}`}, {"user", "memory", "read_graph", `{}`}, {"user", "everything", "echo", hail},
	{"user", "everything", "echo", hail}, {"user", "filesystem", "list_allowed_directories", `{}`},
	{"user", "sequential-thinking", "sequentialthinking", thought},
	{"folder", "filesystem", "list_allowed_directories", `{}`}, {"folder", "memory", "read_graph", `{}`},
	{"session", "sequential-thinking", "sequentialthinking", thought}, {"session", "everything", "echo", hail},
}

// TestDaemon_Fifteen: fifteen sessions in three folders that use ten real servers have as many processes as the config key share
// says. It prints the memory of these processes, and what it would be if each session had its own, measured with two sessions:
//
//	MCPX_FULL=1 go test ./cmd/mcpx -run TestDaemon_Fifteen -v
func TestDaemon_Fifteen(t *testing.T) {
	p := findPeers(t)
	if !mcptest.Full {
		t.Skip("starts 62 processes of Node")
	}
	want := map[string]int{"user": 1, "folder": 3, "session": 15}
	shared := p.openSessions(t, 15, false)
	for i, one := range tenServers {
		if n := len(shared[14].pids[i]); n != want[one.share] {
			t.Errorf("%s, %s: %d processes", one.name, one.share, n)
		}
	}
	own := p.openSessions(t, 2, true)
	t.Logf("%-10s %22s %22s", "sessions", "as share says", "each its own")
	for _, n := range []int{1, 2, 5, 15} {
		alone := own[min(n, 2)-1]
		text, factor := "", 1
		if n > 2 {
			text, factor = " (computed)", n
			alone.memory, alone.processes = own[1].memory/2, own[1].processes/2
		}
		t.Logf("%-10d %10d, %6d MB %10d, %6d MB%s", n, shared[n-1].processes, shared[n-1].memory>>20,
			alone.processes*factor, alone.memory*int64(factor)>>20, text)
	}
}

// serversUse is what the servers of the sessions use.
type serversUse struct {
	processes int
	memory    int64
	pids      []map[int]bool // the process IDs of each of tenServers
}

// openSessions opens sessions, in three folders by turns, and uses all servers in each. If alone is true, each session has
// servers of its own. It returns what is used after each session.
func (p peers) openSessions(t *testing.T, n int, alone bool) (all []serversUse) {
	h := newDaemonHome(t)
	servers := make(map[string]server)
	for i, one := range tenServers {
		var args []string
		if one.name == "filesystem" {
			args = []string{h.dir}
		}
		s := p.server(one.name, map[string]string{"MEMORY_FILE_PATH": fmt.Sprintf("%s/memory%d", h.dir, i)}, args...)
		if s["share"] = one.share; alone {
			s["share"] = "session"
		}
		servers[fmt.Sprint("server", i)] = s
	}
	config := h.config(t, servers, patient)
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for i := range n {
		cmd := h.command(t, "--config", config)
		cmd.Dir = folders[i%3]
		c := &client{peer: startStdio(t, cmd), era: legacy, name: "e2e"}
		c.open(t)
		for j, one := range tenServers {
			if r := c.exec(t, fmt.Sprint("server", j), one.tool, one.arguments); r.IsError {
				t.Fatalf("session %d, %s: %s", i+1, one.name, r.Content)
			}
		}
		out, stderr, code := h.run(t, "", "--config", config, "status", "--json")
		var state daemonState
		if err := json.Unmarshal([]byte(out), &state); err != nil {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
		used := serversUse{state.Processes, state.Memory, make([]map[int]bool, len(tenServers))}
		for j := range tenServers {
			used.pids[j] = make(map[int]bool)
		}
		for _, session := range state.Sessions {
			for _, one := range session.Servers {
				var j int
				_, _ = fmt.Sscanf(one.Name, "server%d", &j)
				for _, pid := range one.PIDs {
					used.pids[j][pid] = true
				}
			}
		}
		all = append(all, used)
	}
	return all
}
