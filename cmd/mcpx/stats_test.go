package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/desk/savings"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// saved runs mcpx stats and returns the figures of each row. It fails the test unless the rows add up to the total.
func (h *home) saved(t *testing.T, config, by string) map[string]savings.Figures {
	t.Helper()
	out, stderr, code := h.run(t, "", "--config", config, "stats", "--json", "--by", by)
	var r savings.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, stderr)
	}
	rows := map[string]savings.Figures{}
	sum := savings.Figures{}
	for _, row := range r.Rows {
		rows[row.Name] = row.Figures
		sum.Add(row.Figures)
	}
	if sum != r.Total || sum.Received-sum.Sent != sum.Compression+sum.Cut+sum.LeftOut {
		t.Errorf("by %s: the rows are %+v, the total is %+v", by, sum, r.Total)
	}
	return rows
}

// near reports whether an estimate is right within one in a hundred: of long texts, only samples are counted.
func near(estimate int64, exact int) bool {
	off := max(estimate-int64(exact), int64(exact)-estimate)
	return off*100 <= int64(exact)+100
}

// TestStats: two mcpx that run at the same time with the same config are counted together. The savings on definitions are what
// mcpx budget measures, once for each session, minus the answers of inspect. The part of a cut result that a client reads later
// does not count as saved. mcpx check and the chart give the same figures, also if the config is named by a link. Another config
// has savings of its own.
func TestStats(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	rows := mcptest.TableText(100)
	log := strings.Repeat("A line of some words, and of some others.\n", 3000)
	definition := func(name string) string {
		return `{"name":"` + name + `","description":"Gives ` + strings.Repeat(name+" and again ", 100) + `","inputSchema":{"type":"object"}}`
	}
	path := h.config(t, map[string]server{"shop": fake(t, mcptest.Spec{
		Tools: json.RawMessage(`[` + definition("table") + `,` + definition("log") + `]`),
		Results: map[string]json.RawMessage{
			"table": json.RawMessage(`{"content":[` + string(wire.TextBlock(rows)) + `]}`),
			"log":   json.RawMessage(`{"content":[` + string(wire.TextBlock(log)) + `]}`),
		},
	})}, nil)
	var sent, looked int // tokens of tables as they were sent, and of answers of inspect
	var all []*stdioPeer
	link := filepath.Join(h.dir, "link.json")
	if err := os.Symlink(path, link); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	} else if err != nil { // links need rights there
		link = path
	}
	for name, path := range map[string]string{"cursor": path, "zed": link} {
		p := h.serveStdio(t, "--config", path)
		all = append(all, p)
		c := &client{peer: p, era: legacy, name: name}
		c.open(t)
		c.list(t)
		c.list(t)
		looked += tokens.Count(c.tool(t, "inspect", `{"server_name":"shop","tool_name":"table"}`).text(t))
		sent += tokens.Count(c.exec(t, "shop", "table", `{}`).text(t))
		cut := c.exec(t, "shop", "log", `{}`).text(t)
		handle := regexp.MustCompile(`"handle":"([^"]+)"`).FindStringSubmatch(cut)
		if handle == nil {
			t.Fatal(cut)
		}
		c.exec(t, "mcpx", "read_result", `{"handle":"`+handle[1]+`","limit":100}`)
		c.tool(t, "exec", `{"server_name":"shop","tool_name":"table","select":"length"}`)
	}
	for _, p := range all {
		p.stdin.Close()
		p.wait(t)
	}

	b := budgetOf(t, h, "--config", path).Catalogue
	servers, tools, clients := h.saved(t, path, "server"), h.saved(t, path, "tool"), h.saved(t, path, "client")
	if got := servers["shop"]; got.Calls != 6 || !near(got.Definitions, 2*b.Servers[0].Direct) || !near(got.Received, 2*(2*tokens.Count(rows)+tokens.Count(log))) {
		t.Errorf("%+v; one session carries %d, a table has %d tokens, the log %d", got, b.Servers[0].Direct, tokens.Count(rows), tokens.Count(log))
	}
	if got := servers["mcpx"]; got.Sessions != 2 || !near(-got.Definitions, 2*b.Total.Surface+looked) {
		t.Errorf("mcpx: %+v; its tools have %d tokens, the answers of inspect %d", got, b.Total.Surface, looked)
	}
	if got := tools["shop.table"]; got.Cut != 0 || !near(got.Compression, 2*tokens.Count(rows)-sent) || !near(got.LeftOut, 2*tokens.Count(rows)) {
		t.Errorf("table: %+v; sent %d of %d", got, sent, 2*tokens.Count(rows))
	}
	read := 2 * 100 * tokens.Count("A line of some words, and of some others.\n")
	if got := tools["shop.log"]; got.Compression != 0 || !near(got.Received, 2*tokens.Count(log)) || got.Cut > got.Received-int64(read) || got.Cut < got.Received/2 {
		t.Errorf("log: %+v; %d were read", got, read)
	}
	if !near(-tools["mcpx.inspect"].Definitions, looked) || len(clients) != 2 || !near(clients["cursor"].Cut, int(clients["zed"].Cut)) || clients["zed"].Calls != 3 {
		t.Errorf("inspect %+v, clients %+v", tools["mcpx.inspect"], clients)
	}
	if days := h.saved(t, path, "day"); len(days) > 2 || len(days) == 0 { // two around midnight
		t.Errorf("%+v", days)
	}

	svg := filepath.Join(h.dir, "saved.svg")
	out, _, code := h.run(t, "", "--config", path, "stats", "--svg", svg)
	table := regexp.MustCompile(`\nshop +6 +[\d,]+ +[\d,]+ +[\d,]+\nmcpx +- +-[\d,]+ +- +-\n`)
	if code != 0 || !table.MatchString(out) || !strings.Contains(out, "once a session (2 sessions)") || !strings.Contains(out, "left out by select") {
		t.Errorf("exit %d: %s", code, out)
	}
	data, err := os.ReadFile(svg)
	if err == nil {
		err = xml.Unmarshal(data, &struct{}{})
	}
	if err != nil || !strings.Contains(string(data), ">shop<") {
		t.Errorf("%v: %s", err, data)
	}
	total := servers["shop"]
	total.Add(servers["mcpx"])
	said := fmt.Sprintf(`"definitions": %d,`, total.Definitions)
	if out, _, _ := h.run(t, "", "--config", path, "check", "--json"); !strings.Contains(out, said) {
		t.Errorf("check has no %s: %s", said, out)
	}
	other := h.write(t, "other.json", `{"mcpServers": {"off": {"command": "x", "enabled": false}}}`)
	for args, want := range map[string]string{"stats": "Nothing was counted", "check": "1 disabled"} {
		if out, _, code := h.run(t, "", "--config", other, args); code != 0 || !strings.Contains(out, want) || strings.Contains(out, "saved since") {
			t.Errorf("%s with another config: %s", args, out)
		}
	}
	for _, days := range []string{"0", "401", "x"} {
		if _, stderr, code := h.run(t, "", "--config", path, "stats", "--days", days); code != exitUsage || !strings.Contains(stderr, "days") {
			t.Errorf("--days %s: exit %d, %s", days, code, stderr)
		}
	}
}

// TestStats_Killed: of an mcpx that is killed, only the last seconds are missing.
func TestStats_Killed(t *testing.T) {
	mcptest.Parallel(t)
	if !mcptest.Full {
		t.Skip("waits for some seconds; MCPX_FULL=1 runs it")
	}
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	d := h.serveHTTP(t, "--config", path)
	for _, era := range []string{legacy, modern} {
		c := &client{peer: d.peer(t), era: era, name: "agent " + era}
		c.open(t)
		c.list(t)
		c.exec(t, "fake", "echo", `{"text":"x"}`)
	}
	mcptest.WaitFor(t, "the calls in the file", patience, func() bool {
		return h.saved(t, path, "server")["fake"].Calls == 2
	})
	before := h.saved(t, path, "client")
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.exited
	after := h.saved(t, path, "client")
	if len(after) != 2 || after["agent "+modern].Sessions != 1 || after["agent "+legacy] != before["agent "+legacy] || after["agent "+legacy].Definitions == 0 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if out, _, code := h.run(t, "", "--config", path, "stats"); code != 0 || !strings.Contains(out, "fake") {
		t.Errorf("exit %d: %s", code, out)
	}
}
