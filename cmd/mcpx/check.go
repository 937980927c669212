package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/control"
	"mcpx/internal/desk/savings"
	"mcpx/internal/desk/share"
)

type checkCommand struct {
	Names   []string `arg:"" optional:"" name:"server" help:"Try only these servers. SERVER.TOOL also says whether a model sees the tool, and why not."`
	JSON    bool     `name:"json" help:"Print the outcome as JSON."`
	Timeout duration `help:"Wait no longer than this, such as 90 or 1m30s; without it, as long as the servers' connect_timeout." placeholder:"DURATION"`

	// within is nil if the check is a command of its own. If the check is a part of another command, such as init, within is the
	// command line of that command, for hints. Then runHere counts the tokens of the tool definitions too. But it does not print
	// what the servers cost and save, because the other command prints it later.
	within  *cli
	outcome *outcome          // set by runHere
	silent  map[string]string // why a connected server does not answer now, by server
}

// states returns the state that runHere found for each server.
func (cmd *checkCommand) states() map[string]catalog.State {
	states := make(map[string]catalog.State)
	if cmd.outcome != nil {
		for _, one := range cmd.outcome.Servers {
			states[one.Name] = one.State
		}
	}
	return states
}

// duration is a flag value, written as in the config: a number of seconds such as 90, or with units, such as
// 1m30s.
type duration time.Duration

// MarshalText is for the daemon, which gets the flags as JSON.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	all := string(text)
	if _, err := strconv.ParseFloat(all, 64); err == nil {
		all += "s"
	}
	parsed, err := time.ParseDuration(all)
	*d = duration(parsed)
	return err
}

func (cmd *checkCommand) Help() string {
	return "Exits with 1 where a server is down, a tool that was asked for is not visible, or the certificates or the audit trail of mcpx serve cannot be used.\n\n" + examples(
		"mcpx check", "mcpx check github filesystem", "mcpx check github.create_issue", "mcpx check --json --timeout 90s")
}

// Run checks the servers in the daemon, if one runs, so that a server that sessions share is not started a second time. Otherwise
// it checks them in this process.
func (cmd *checkCommand) Run(ctx context.Context, c *cli, s streams) error {
	if ran, err := c.warm(ctx, s, daemonCommand{command: "check", options: cmd}); ran {
		return err
	}
	return cmd.runHere(ctx, c, s)
}

// runHere connects once to each enabled server that the user has named or, if the user has named none, to all enabled servers. It
// prints the outcome, and writes the catalogues to the disk cache.
func (cmd *checkCommand) runHere(ctx context.Context, c *cli, s streams) error {
	cfg, err := c.loadConfig(ctx, s, slices.Clone(cmd.Names)...)
	if err != nil {
		return err
	}
	servers, tools, err := namedIn(cfg, cmd.Names)
	if err != nil {
		return err
	}
	a, err := c.start(s, cfg, app.Command, servers...)
	if err != nil {
		return err
	}
	defer a.Close()
	if !cmd.JSON {
		printHead(cfg, s)
	}
	cmd.wait(ctx, a, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	outcome := checked(cmp.Or(cmd.within, c), a, servers, tools, cmd.silent)
	faults := a.ProgramFaults(ctx)
	outcome.Warnings = append(outcome.Warnings, faults...)
	for _, fault := range faults {
		if !cmd.JSON {
			fmt.Fprint(s.out, s.screen.Hang(s.screen.Yellow("program   "), fault))
		}
	}
	if cmd.outcome = outcome; len(servers) == 0 {
		outcome.Cost = costOf(a, c.usesDaemon(cfg))
		outcome.Dialled = dialledIn(ctx, cfg)
		outcome.Faults = a.ServeFaults()
		outcome.OK = outcome.OK && len(outcome.Faults) == 0
	}
	switch {
	case cmd.JSON:
		err = printJSON(s.out, outcome)
	case cmd.within != nil:
		outcome.advises, outcome.Definitions = true, definitionsOf(a)
		outcome.printServers(s)
	default:
		outcome.print(s)
	}
	if err == nil && !outcome.OK {
		return errFailed
	}
	return err
}

// listsTime is how long check waits for the lists of resources and prompts of all servers. It is longer than the 10 s that
// one attempt to get a list may take.
const listsTime = 15 * time.Second

// wait waits until mcpx has tried every server and then, for at most listsTime, until it has the lists of resources and prompts.
// --timeout limits both waits together. The lists go to the disk cache. If they were not there, the tool descriptions that the next
// client gets would change soon after the client has started.
func (cmd *checkCommand) wait(ctx context.Context, a *app.App, s streams) {
	if cmd.Timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(cmd.Timeout))
		defer cancel()
		ctx = bounded
	}
	cmd.silent = tryAll(ctx, a, s)
	bounded, cancel := context.WithTimeout(ctx, listsTime)
	defer cancel()
	for _, server := range a.Config.Servers {
		a.Registry.WaitListedOne(bounded, server.Name)
	}
}

// namedIn finds the servers and tools for arguments of the form SERVER or SERVER.TOOL.
func namedIn(cfg *config.Config, names []string) (servers []string, tools []checkedTool, err error) {
	for _, name := range names {
		server, tool := named(cfg, name)
		if server == "" {
			return nil, nil, noSuchServer(name, serverNames(cfg))
		}
		if !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
		if tool != "" {
			tools = append(tools, checkedTool{Server: server, Tool: tool})
		}
	}
	return servers, tools, nil
}

func serverNames(cfg *config.Config) (names []string) {
	for _, server := range cfg.Servers {
		names = append(names, server.Name)
	}
	return names
}

// named finds the server for a name of the form SERVER or SERVER.TOOL. The names of servers and tools may
// contain dots. If the config has no such server, server is empty.
func named(cfg *config.Config, name string) (server, tool string) {
	server = cfg.Served(name)
	for dot := strings.LastIndexByte(name, '.'); dot > 0 && server == ""; dot = strings.LastIndexByte(name[:dot], '.') {
		server, tool = cfg.Served(name[:dot]), name[dot+1:]
	}
	return server, tool
}

func noSuchServer(name string, all []string) error {
	text := fmt.Sprintf("the config has no server %q", name)
	near := sanitize.Nearest(name, all)
	if server, _, ok := strings.Cut(name, "."); ok && len(near) == 0 {
		near = sanitize.Nearest(server, all)
	}
	switch {
	case len(near) > 0:
		text += "; did you mean " + near[0] + "?"
	case len(all) > 0:
		text += "; it has " + strings.Join(all, ", ")
	}
	return errors.New(text)
}

// outcome is the result of check, as --json prints it.
type outcome struct {
	OK       bool            `json:"ok"`
	Config   string          `json:"config"`
	Faults   []string        `json:"faults,omitempty"` // why mcpx serve would not start
	Warnings []string        `json:"warnings,omitempty"`
	Servers  []checkedServer `json:"servers"`
	Tools    []checkedTool   `json:"tools,omitempty"`
	Cost     *cost           `json:"cost,omitempty"`
	Savings  *savings.Report `json:"savings,omitempty"`
	// Definitions says how many tokens the tool definitions have; nil if none were counted.
	Definitions *definitions `json:"definitions,omitempty"`
	// Dialled has the servers that have dialled in (connected by themselves) to a running mcpx that uses this config file.
	Dialled []control.Dialled `json:"dialled,omitempty"`

	advises bool // print why servers do not work, and advice, at the end
	cli     cli  // for hints
	named   bool // the user has named servers, and so gets more details
}

type checkedServer struct {
	Name      string        `json:"name"`
	State     catalog.State `json:"state"`
	Protocol  string        `json:"protocol,omitempty"`
	Transport string        `json:"transport,omitempty"`
	Tools     *int          `json:"tools,omitempty"`
	Seconds   float64       `json:"seconds,omitempty"`
	Share     conf.Share    `json:"share,omitempty"`
	ShareWhy  string        `json:"share_why,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
}

type checkedTool struct {
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Visible bool   `json:"visible"`
	Why     string `json:"why"`
}

// checked returns the outcome for these servers and tools. If servers is empty, it includes all servers. silent has the connected
// servers that do not answer, each with the reason.
func checked(c *cli, a *app.App, servers []string, tools []checkedTool, silent map[string]string) *outcome {
	cfg, full, seen := a.Config, a.Registry.Snapshot(), a.Executor.Catalogue(nil)
	unmatched := app.Unmatched(cfg, full)
	o := &outcome{
		OK: true, Config: cfg.Path, Warnings: slices.Concat(cfg.Warnings, app.UnknownInRights(cfg)), Tools: tools,
		Servers: []checkedServer{}, // never null in JSON
		named:   len(servers) > 0, cli: *c,
	}
	if len(servers) == 0 {
		o.Warnings = append(o.Warnings, unmatched[""]...)
	}
	for i := range seen.Servers {
		server := &seen.Servers[i]
		if len(servers) > 0 && !slices.Contains(servers, server.Name) {
			continue
		}
		one := checkServer(c, a, server)
		one.Notes = append(one.Notes, unmatched[server.Name]...)
		if why := silent[server.Name]; why != "" && one.State == catalog.Ready {
			one.State, one.Notes = catalog.Degraded, append(one.Notes, why)
		}
		o.OK = o.OK && slices.Contains(inOrder, one.State)
		o.Servers = append(o.Servers, one)
	}
	for i := range o.Tools {
		one := &o.Tools[i]
		server, _ := full.Server(one.Server)
		status, _ := a.Registry.Status(one.Server)
		why := app.Explain(cfg, server, status.Faults, one.Tool)
		one.Visible, one.Why = why.Visible, c.withConfig(why.Why, "lock")
		o.OK = o.OK && one.Visible
	}
	if saved, err := app.SavedBy(cfg.Path, checkDays, "day"); err == nil && saved.Total != (savings.Figures{}) {
		saved.Rows = nil
		o.Savings = saved
	}
	return o
}

// dialledIn returns the servers that have dialled in (connected by themselves) to the running mcpx processes that use this config
// file.
func dialledIn(ctx context.Context, cfg *config.Config) (all []control.Dialled) {
	path, err := filepath.Abs(cfg.Path)
	if cfg.Dial == nil || err != nil {
		return nil
	}
	mine, _, _ := readers(ctx, path)
	for _, one := range mine {
		all = append(all, one.Dialled...)
		one.Close()
	}
	return all
}

// inOrder has the states in which a server does not make the check fail.
var inOrder = []catalog.State{catalog.Ready, catalog.Idle, catalog.Disabled, catalog.NeedsLogin}

func checkServer(c *cli, a *app.App, server *catalog.Server) checkedServer {
	one := checkedServer{Name: server.Name, State: server.State, Transport: server.Transport}
	if server.Known {
		n := len(server.Tools)
		one.Tools = &n
	}
	if i := slices.IndexFunc(a.Config.Servers, func(s config.Server) bool { return s.Name == server.Name }); i >= 0 {
		s := &a.Config.Servers[i]
		found := share.Of(s)
		one.Share, one.ShareWhy = found.Share, sanitize.NewSecrets(s.Secrets, nil).Strike(found.Why)
	}
	addNote := func(text string) {
		if text = sanitize.Line(text, 1000); text != "" {
			one.Notes = append(one.Notes, c.withConfig(c.withConfig(text, "login", server.Name), "lock"))
		}
	}
	status, ok := a.Registry.Status(server.Name)
	if ok && status.Protocol != "" {
		one.Protocol, one.Seconds = status.Protocol, status.Took.Round(time.Millisecond).Seconds()
	}
	if server.State == catalog.Connecting {
		addNote(cmp.Or(server.Reason, "no answer yet"))
	} else {
		addNote(server.Reason)
	}
	addNote(server.Hidden)
	if full, known := a.Registry.Snapshot().Server(server.Name); known && full.Known {
		addNote(app.Unapproved(a.Config, full))
	}
	if n := len(status.Faults); n > 0 {
		addNote(terminal.Count(n, "tool") + " refused: " + strings.Join(status.Faults[:min(n, 3)], "; "))
	}
	return one
}

// printHead prints the path of the config and its warnings.
func printHead(cfg *config.Config, s streams) {
	fmt.Fprint(s.out, s.screen.Hang(s.screen.Dim("config    "), cfg.Path))
	for _, warning := range slices.Concat(cfg.Warnings, app.UnknownInRights(cfg)) {
		fmt.Fprint(s.out, s.screen.Hang(s.screen.Yellow("warning   "), warning))
	}
}

func (o *outcome) print(s streams) {
	o.printServers(s)
	o.printFigures(s)
}

// printServers prints what is known of each server and tool.
func (o *outcome) printServers(s streams) {
	sc := s.screen
	for _, fault := range o.Faults {
		fmt.Fprint(s.out, sc.Hang(sc.Red("fault     "), sanitize.Line(fault, 1000)))
	}
	for _, warning := range o.Warnings {
		if strings.Contains(warning, " matches no tool") { // the other warnings were printed before
			fmt.Fprint(s.out, sc.Hang(sc.Yellow("warning   "), warning))
		}
	}
	o.printDialled(s)
	if len(o.Servers) == 0 && len(o.Dialled) == 0 {
		fmt.Fprint(s.out, "\nno servers are configured\n\n",
			"add one:    ", o.cli.hint("add", "memory", "--", "npx", "-y", "@modelcontextprotocol/server-memory"), "\n",
			"or take those of your MCP clients:    ", o.cli.hint("init"), "\n")
		return
	}
	rows := []terminal.Row{{Cells: []string{"SERVER", "STATE", "ERA", "TRANSPORT", "SHARE", "TOOLS", "TIME"}}}
	for _, one := range o.Servers {
		count, took := "-", "-"
		if one.Tools != nil {
			count = strconv.Itoa(*one.Tools)
		}
		if one.Protocol != "" {
			took = seconds(one.Seconds)
		}
		if o.named && one.ShareWhy != "" {
			one.Notes = append(one.Notes, fmt.Sprintf("share: %s, as %s", one.Share, one.ShareWhy))
		}
		rows = append(rows, terminal.Row{
			Cells: []string{one.Name, stateOn(sc, one.State), cmp.Or(one.Protocol, "-"), cmp.Or(one.Transport, "-"), cmp.Or(string(one.Share), "-"), count, took},
			Notes: one.Notes,
		})
	}
	fmt.Fprint(s.out, "\n", sc.Table(5, rows))
	if len(o.Tools) > 0 {
		fmt.Fprintln(s.out)
	}
	for _, one := range o.Tools {
		name := sc.Red(one.Server + "." + one.Tool)
		if one.Visible {
			name = sc.Green(one.Server + "." + one.Tool)
		}
		fmt.Fprint(s.out, sc.Hang(name+"  ", one.Why))
	}
}

// printFigures prints how many servers work, what they cost and what was saved.
func (o *outcome) printFigures(s streams) {
	if len(o.Servers) == 0 {
		return
	}
	sc, tools := s.screen, 0
	for _, one := range o.Servers {
		if one.Tools != nil {
			tools += *one.Tools
		}
	}
	servers, all := terminal.Count(len(o.Servers), "server"), terminal.Count(tools, "tool")
	fmt.Fprint(s.out, "\n", sc.Hang("", fmt.Sprintf("%s: %s; %s", servers, o.states(sc), all)))
	if o.advises {
		o.printDown(s)
	}
	if o.Cost != nil {
		for _, line := range o.Cost.lines() {
			fmt.Fprint(s.out, sc.Hang(line[:len(line)-len(strings.TrimLeft(line, " "))], strings.TrimLeft(line, " ")))
		}
	}
	if o.Definitions != nil {
		fmt.Fprint(s.out, sc.Hang("", o.Definitions.String()+": "+o.cli.hint("budget")))
	}
	if o.Savings == nil {
		return
	}
	if total := o.Savings.Total; total.Definitions != 0 || total.Compression != 0 || total.Cut != 0 {
		fmt.Fprint(s.out, sc.Hang("", fmt.Sprintf("tokens saved since %s: definitions %s, compression %s, left behind a handle %s; %s says more",
			o.Savings.Since, figure(sc, total.Definitions), figure(sc, total.Compression), figure(sc, total.Cut), o.cli.hint("stats"))))
	}
}

// printDown prints for each server that is not ready, idle or disabled why that is so, and what the user can do.
func (o *outcome) printDown(s streams) {
	for _, one := range o.Servers {
		if one.State == catalog.Ready || one.State == catalog.Idle || one.State == catalog.Disabled {
			continue
		}
		why := cmp.Or(strings.Join(one.Notes, "; "), "no reason is known")
		fmt.Fprint(s.out, s.screen.Hang("  ", fmt.Sprintf("%s is %s: %s", one.Name, stateOn(s.screen, one.State), why)))
		fmt.Fprint(s.out, s.screen.Hang("    ", "try it again: "+o.cli.hint("check", one.Name)+"; or leave it out: "+o.cli.hint("disable", one.Name)))
	}
}

// printDialled prints a line for each server that has dialled in.
func (o *outcome) printDialled(s streams) {
	for _, one := range o.Dialled {
		text := fmt.Sprintf("%s: %s, for %s, %s", one.Name, one.State, one.For, terminal.Count(one.Tools, "tool"))
		if !one.Approved {
			text += ", not approved yet"
		}
		fmt.Fprint(s.out, s.screen.Hang("dial      ", sanitize.Line(text, 300)))
	}
}

// checkDays is the number of days for which mcpx check shows the savings.
const checkDays = 30

// stateOn returns the name of a state in its colour.
func stateOn(sc terminal.Screen, state catalog.State) string {
	switch text := string(state); state {
	case catalog.Ready:
		return sc.Green(text)
	case catalog.Unavailable:
		return sc.Red(text)
	case catalog.Disabled:
		return sc.Dim(text)
	default:
		return sc.Yellow(text)
	}
}

func seconds(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) + " s" }

// states returns a text with the number of servers in each state.
func (o *outcome) states(sc terminal.Screen) string {
	var parts []string
	for _, state := range []catalog.State{
		catalog.Ready, catalog.Idle, catalog.Degraded, catalog.Connecting, catalog.NeedsLogin, catalog.Unavailable, catalog.Disabled,
	} {
		n := 0
		for _, one := range o.Servers {
			if one.State == state {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+stateOn(sc, state))
		}
	}
	return strings.Join(parts, ", ")
}
