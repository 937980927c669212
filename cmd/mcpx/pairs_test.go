package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// pairLine is one line of SDK releases, such as a major version, with its server and its client.
type pairLine struct {
	name, title string
	eras        []string // the protocol eras that the SDK supports
	server      []string // the command of its server, without the argument stdio or http
	client      []string
	role        bool // the test binary is the server and the client (see pairRole)
}

// pairLines returns all SDK lines to test. It skips the test if one of the SDKs is not installed.
func pairLines(t testing.TB) []pairLine {
	findPeers(t)
	bin, node := python(t), newerNode()
	both, old := []string{"legacy", "modern"}, []string{"legacy"}
	for _, needed := range []string{node, filepath.Join(bin, "fastmcp4", "bin", "python")} {
		if _, err := os.Stat(needed); err != nil {
			mcptest.Missing(t, "not installed (.ci/run installs it): %v", err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	py := func(name, title string, eras []string) pairLine {
		interpreter := filepath.Join(bin, name, "bin", "python")
		dir := filepath.Join(testdata(), "pypi")
		return pairLine{name: name, title: title, eras: eras, server: []string{interpreter, filepath.Join(dir, "pair_server.py")}, client: []string{interpreter, filepath.Join(dir, "pair_client.py")}}
	}
	js := func(name, title string, eras []string, dir string) pairLine {
		return pairLine{name: name, title: title, eras: eras, server: []string{node, filepath.Join(testdata(), dir, "pair-server.mjs")}, client: []string{node, filepath.Join(testdata(), dir, "pair-client.mjs")}}
	}
	own := func(name, title string) pairLine {
		return pairLine{name: name, title: title, eras: both, server: []string{exe}, client: []string{exe, "--"}, role: true}
	}
	return []pairLine{
		py("sdk1", "Python 1", old), py("sdk2", "Python 2", both), py("fastmcp3", "FastMCP 3", old), py("fastmcp4", "FastMCP 4", both),
		js("ts1", "TypeScript 1", old, "npm"), js("ts2", "TypeScript 2", both, "conformance"), own("go-sdk", "go-sdk"), own("mcp-go", "mcp-go"),
	}
}

// pairing starts servers and clients of all SDK lines. Its servers can be used by any number of mcpx processes and clients.
type pairing struct {
	h     *home
	lines []pairLine
}

// env returns the environment variables of a server.
func (p *pairing) env(line pairLine, name string) map[string]string {
	env := map[string]string{"PAIR_NAME": name, "PAIR_CANCELLED": filepath.Join(p.h.dir, "cancelled")}
	if line.role {
		env[pairRole] = line.name + " server"
	}
	return env
}

// serve returns the config entry of a server of this SDK line, and a name for it.
func (p *pairing) serve(t testing.TB, line pairLine, over string) (name string, entry server) {
	t.Helper()
	name = line.name + "-" + over
	env := p.env(line, name)
	if over == "stdio" {
		return name, server{"command": line.server[0], "args": append(slices.Clone(line.server[1:]), "stdio"), "env": env}
	}
	cmd := exec.Command(line.server[0], append(slices.Clone(line.server[1:]), "http")...)
	cmd.Env = p.h.env()
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.Stderr = &lockedBuffer{}
	in, out := start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, cmd.Stderr)
	}
	return name, server{"url": strings.TrimSpace(url), "type": "http"}
}

// pairTries are the check results of a client, by server and check.
type pairTries map[string]map[string]string

// try runs a client of an SDK line and returns its results. to is stdio or http, followed by the command or
// URL.
func (p *pairing) try(t testing.TB, line pairLine, era, who string, targets []pairTarget, to ...string) pairTries {
	t.Helper()
	list, _ := json.Marshal(targets)
	cmd := exec.Command(line.client[0], slices.Concat(line.client[1:], []string{era}, to)...)
	cmd.Env = append(p.h.env(), "PAIR_CLIENT="+who, "PAIR_TARGETS="+string(list), "PYTHONWARNINGS=ignore")
	for key, value := range p.env(line, targets[0].Server) {
		if key != pairRole {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	if line.role {
		cmd.Env = append(cmd.Env, pairRole+"="+line.name+" client")
	}
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(pairPatience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	tries := make(pairTries)
	for line := range strings.Lines(out.String()) {
		var one struct {
			Server  string
			Results map[string]string
		}
		if json.Unmarshal([]byte(line), &one) == nil {
			tries[one.Server] = one.Results
		}
	}
	if len(tries) < len(targets) && targets[0].Prefix != "" { // without mcpx, a server may support only the other era
		t.Errorf("%s, %s, %s: %d of %d servers tried, %v\n%.3000s", line.title, era, to[0], len(tries), len(targets), err, failure.String())
	}
	return tries
}

// pairPatience is the time limit for one client that checks all servers.
const pairPatience = 30 * time.Minute

// through returns the targets that a client reaches through an mcpx with these servers.
func through(servers map[string]server) (targets []pairTarget) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		targets = append(targets, pairTarget{name, name + "__", "pair://" + name})
	}
	return targets
}

// want fails the test if a check has failed that should pass. except lists checks that may fail, by server.
func (tries pairTries) want(t testing.TB, who string, except map[string][]string) {
	t.Helper()
	for server, results := range tries {
		for _, check := range slices.Sorted(maps.Keys(results)) {
			if got := results[check]; got != "ok" && !slices.Contains(except[server], check) {
				t.Errorf("%s at %s: %s: %.300s", who, server, check, got)
			}
		}
	}
}

// pushed are the checks in which the server sends requests to the client during a call, as in the legacy era.
var pushed = []string{"elicit", "sample", "roots"}

// TestPairs: servers that support both eras send requests to clients of either era. Two clients at a time use a shared session
// with the server.
func TestPairs(t *testing.T) {
	mcptest.Parallel(t)
	p := &pairing{newHome(t), pairLines(t)}
	servers := make(map[string]server)
	except := make(map[string][]string) // clients of the modern era fail these checks without mcpx too
	for _, line := range p.lines {
		if !slices.Contains([]string{"sdk2", "fastmcp4", "go-sdk", "ts2"}, line.name) {
			continue
		}
		for _, over := range []string{"http", "stdio"} {
			if over == "stdio" && line.name != "fastmcp4" && line.name != "ts2" {
				continue
			}
			name, entry := p.serve(t, line, over)
			servers[name], except[name] = entry, pushed
		}
	}
	d := p.h.serveHTTP(t, "--config", p.h.config(t, servers, map[string]any{"view": "tools", "startup_wait": 120, "exec_wait": 120, "connect_timeout": 120}))
	targets := through(servers)
	results := make(map[string]pairTries)
	var clients sync.WaitGroup
	var mu sync.Mutex
	for _, line := range p.lines {
		if line.name == "ts1" || line.name == "ts2" {
			clients.Go(func() {
				tries := p.try(t, line, line.eras[len(line.eras)-1], line.name, targets, "http", d.url)
				mu.Lock()
				defer mu.Unlock()
				results[line.name] = tries
			})
		}
	}
	clients.Wait()
	t.Cleanup(func() { // the first lines of a failure are those that a reader sees
		if t.Failed() {
			t.Logf("stderr of mcpx:\n%.6000s", d.stderr.String())
		}
	})
	results["ts1"].want(t, "TypeScript 1", nil)
	results["ts2"].want(t, "TypeScript 2", except)
}

// pairLetters are the checks with their letters in the table.
var pairLetters = []struct{ check, letter string }{
	{"elicit", "E"}, {"need_elicit", "e"}, {"sample", "S"}, {"need_sample", "s"}, {"roots", "R"}, {"need_roots", "r"},
	{"progress", "p"}, {"cancel", "c"}, {"updates", "u"},
}

// cell returns the letters of the checks that fail in one pairing. Those that also fail without mcpx are in
// parentheses.
func cell(results, direct map[string]string) string {
	if results == nil {
		return "–"
	}
	own, both := "", ""
	for _, one := range pairLetters {
		got, tried := results[one.check]
		switch before, directly := direct[one.check]; {
		case !tried || got == "ok":
		case directly && before != "ok":
			both += one.letter
		default:
			own += one.letter
		}
	}
	if both != "" {
		both = "(" + both + ")"
	}
	if own+both == "" {
		return "✓"
	}
	return own + both
}

// TestPairsTable compares the results with the table in docs/clients.md. With MCPX_PAIRS=write it writes the
// table instead.
func TestPairsTable(t *testing.T) {
	mode := os.Getenv("MCPX_PAIRS")
	if mode == "" && !mcptest.Full {
		t.Skip("takes a quarter of an hour: MCPX_FULL=1, or MCPX_PAIRS=write to write docs/clients.md")
	}
	p := &pairing{newHome(t), pairLines(t)}
	var columns []string
	servers := make(map[string]server)
	byName := make(map[string]pairLine)
	for _, line := range p.lines {
		for _, over := range []string{"stdio", "http"} {
			name, entry := p.serve(t, line, over)
			servers[name], byName[name] = entry, line
			columns = append(columns, name)
		}
	}
	// Each client has a new mcpx, so that it is not affected by what an earlier client did, such as a cancelled
	// call.
	ways := []string{"HTTP, shared", "stdio", "HTTP, per_client"}
	results := make(map[string]map[string]pairTries) // by way of connecting, and then by client and era
	var clients sync.WaitGroup
	var mu sync.Mutex
	places := make(chan struct{}, 3)
	for _, way := range append([]string{"directly"}, ways...) {
		results[way] = make(map[string]pairTries)
		for _, line := range p.lines {
			for _, era := range line.eras {
				places <- struct{}{}
				clients.Go(func() {
					defer func() { <-places }()
					var tries pairTries
					if way == "directly" {
						tries = p.directly(t, line, era, columns, byName, servers)
					} else {
						tries = p.through(t, line, era, way, servers)
					}
					t.Logf("tried %s", mustJSON(t, map[string]any{"way": way, "client": line.name + era, "tries": tries}))
					mu.Lock()
					defer mu.Unlock()
					results[way][line.name+era] = tries
				})
			}
		}
	}
	clients.Wait()
	var table strings.Builder
	table.WriteString("| client | era | mcpx |")
	for _, name := range columns {
		fmt.Fprintf(&table, " %s, %s |", byName[name].title, name[strings.LastIndex(name, "-")+1:])
	}
	fmt.Fprintf(&table, "\n|%s\n", strings.Repeat(" --- |", 3+len(columns)))
	for _, line := range p.lines {
		for _, era := range line.eras {
			direct := results["directly"][line.name+era]
			for _, way := range ways {
				tries := results[way][line.name+era]
				fmt.Fprintf(&table, "| %s | %s | %s |", line.title, era, way)
				for _, name := range columns {
					fmt.Fprintf(&table, " %s |", cell(tries[name], direct[name]))
					for check, got := range tries[name] {
						if got != "ok" {
							t.Logf("%s, %s, %s at %s: %s: %.200s (directly: %.100s)", line.title, era, way, name, check, got, direct[name][check])
						}
					}
				}
				table.WriteByte('\n')
			}
		}
	}
	p.record(t, mode == "write", table.String())
}

// through runs a client with an mcpx of its own, and returns the results.
func (p *pairing) through(t testing.TB, line pairLine, era, way string, servers map[string]server) pairTries {
	all := make(map[string]server)
	for name, entry := range servers {
		all[name] = maps.Clone(entry)
		if way == "HTTP, per_client" {
			all[name]["session"] = "per_client"
		}
	}
	for _, other := range p.lines { // where a server starts slowly, as on a busy machine, mcpx may choose the legacy era
		if era == "modern" && slices.Contains(other.eras, era) {
			all[other.name+"-stdio"]["protocol"] = era
		}
	}
	h := newHome(t)
	config := h.config(t, all, map[string]any{"view": "tools"})
	if way == "stdio" {
		return p.try(t, line, era, "ada", through(servers), "stdio", binary(t), "serve", "--config", config)
	}
	d := h.serveHTTP(t, "--config", config)
	defer func() {
		terminate(d.cmd)
		<-d.exited
	}()
	return p.try(t, line, era, "ada", through(servers), "http", d.url)
}

// directly runs a client without mcpx, and returns the results.
func (p *pairing) directly(t testing.TB, line pairLine, era string, columns []string, byName map[string]pairLine, servers map[string]server) pairTries {
	all := make(pairTries)
	for _, name := range columns {
		if other := byName[name]; !slices.Contains(other.eras, era) {
			continue // the client supports only the other era, so it cannot connect
		}
		to := []string{"http"}
		if url, over := servers[name]["url"].(string); over {
			to = append(to, url)
		} else {
			to = append([]string{"stdio", "env"}, environ(servers[name]["env"].(map[string]string))...)
			to = append(append(to, servers[name]["command"].(string)), servers[name]["args"].([]string)...)
		}
		maps.Copy(all, p.try(t, line, era, "ada", []pairTarget{{name, "", "pair://" + name}}, to...))
	}
	return all
}

func environ(env map[string]string) (pairs []string) {
	for _, key := range slices.Sorted(maps.Keys(env)) {
		pairs = append(pairs, key+"="+env[key])
	}
	return pairs
}

func mustJSON(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// record compares the table with the one in docs/clients.md, or writes it there.
func (p *pairing) record(t testing.TB, write bool, table string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "clients.md")
	written := mcptest.TableIn(t, path, "pairings", table, write)
	if write {
		return
	}
	for row := range strings.Lines(written) {
		if !strings.Contains(table, row) {
			t.Errorf("no longer so (MCPX_PAIRS=write writes %s): %s", path, row)
		}
	}
}
