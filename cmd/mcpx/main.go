// Command mcpx connects an AI agent to many MCP servers: the agent sees only two tools, inspect and exec.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"mcpx/internal/app"
	"mcpx/internal/base/memory"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/config"
)

// The exit codes. The value of exitUsage is the exit code of kong's own errors.
const (
	exitOK     = 0
	exitFailed = 1
	exitConfig = 2
	exitUsage  = 80
	exitPipe   = 128 + int(syscall.SIGPIPE) // the exit code that a shell reports when a program writes to a closed pipe
)

// cli has the flags of all commands.
type cli struct {
	Config   string `help:"The config file." placeholder:"FILE" type:"path"`
	LogLevel level  `help:"debug, info, warn or error; overrides the config." placeholder:"LEVEL" enum:",debug,info,warn,error" default:""`

	Daemon bool `help:"Leave the work to the daemon, which all sessions of this user share (on by default)." negatable:"" default:"true"`

	ShowVersion versionFlag `name:"version" env:"-" help:"Print the version."`
}

// versionFlag prints the version and exits.
type versionFlag bool

// BeforeReset is called by kong if the flag was given.
func (versionFlag) BeforeReset(parser *kong.Kong) error {
	fmt.Fprintln(parser.Stdout, versionText())
	parser.Exit(exitOK)
	return nil
}

// commandRow describes a command.
type commandRow struct {
	name, help string
	run        any    // a pointer to a struct: its fields are the flags and arguments, and its method Run is the command
	tag        string // for kong
}

// allCommands returns all commands in the order of the help: what serves, what edits files of mcpx and its clients, credentials,
// what uses the servers of the config, the daemon, and the rest.
func allCommands() []commandRow {
	return []commandRow{
		{"serve", "Serve over stdio, or over HTTP with --http.", &serveCommand{}, `default:"withargs"`},
		{"dial", "Offer servers of this machine to a hosted mcpx, which cannot reach them.", &dialCommand{}, ""},
		{"init", "Make a config of the servers that your MCP clients have, and connect the clients.", &initCommand{}, ""},
		{"schema", "Print the JSON Schema of the config.", &schemaCommand{}, ""},
		{"connect", "Write mcpx into the config file of an MCP client.", &connectCommand{}, ""},
		{"disconnect", "Undo connect.", &disconnectCommand{}, ""},
		{"find", "Look for servers in an MCP registry.", &findCommand{}, ""},
		{"add", "Add a server to the config.", &addCommand{}, ""},
		{"remove", "Remove a server from the config.", &removeCommand{}, ""},
		{"enable", "Use a server of the config again.", &enableCommand{}, ""},
		{"disable", "Keep a server in the config, but do not use it.", &disableCommand{}, ""},
		{"login", "Log in to a server.", &loginCommand{}, ""},
		{"logout", "Forget a login.", &logoutCommand{}, ""},
		{"secret", "Store the secrets that the config names as ${keyring:NAME}.", &secretCommand{}, ""},
		{"token", "Make and delete the tokens of clients over HTTP.", &tokenCommand{}, ""},
		{"logins", "Show who is logged in through mcpx, and end logins.", &loginsCommand{}, ""},
		{"reload", "Make the running mcpx read the config again, and print what changed.", &reloadCommand{}, ""},
		{"check", "Check the config and every upstream.", &checkCommand{}, ""},
		{"lock", "Approve the tool definitions of the servers.", &lockCommand{}, ""},
		{"inspect", "Print what the model would get from inspect.", &inspectCommand{}, ""},
		{"exec", "Print what the model would get from exec.", &execCommand{}, ""},
		{"audit", "Check the audit trail that the config key audit writes.", &auditCommand{}, ""},
		{"stats", "Print how many tokens were saved: definitions, compression and cutting apart.", &statsCommand{}, ""},
		{"budget", "Measure tokens: a config, or recorded tools and results, direct against mcpx.", &budgetCommand{}, ""},
		{"status", "Show the daemon: its sessions, servers and memory.", &statusCommand{}, ""},
		{"logs", "Print what the sessions of the daemon have logged.", &logsCommand{}, ""},
		{"restart", "Start a server anew, in all sessions of the daemon.", &restartCommand{}, ""},
		{"ui", "Open the page: servers, their tools and logs, calls and savings.", &uiCommand{}, ""},
		{"stop", "End the daemon, with all its sessions and servers.", &stopCommand{}, ""},
		{"skill", "Print a SKILL.md that teaches an agent with a shell to use mcpx without MCP.", &skillCommand{}, ""},
		{"demo", "Show what mcpx does, without a config or a network.", &demoCommand{}, ""},
		{"version", "Print the version, and what this binary is made of.", &versionCommand{}, ""},
		{"help", "Print what a command does, with examples.", &helpCommand{}, ""},
		{"completion", "Print the script that completes commands, servers and tools in your shell.", &completionCommand{}, ""},
		{"__complete", "", &completeCommand{}, `hidden:""`},
	}
}

// meant returns the commands that a command line may mean: those whose names are in it, or serve. It returns all commands if the
// line may ask for help. With this result kong understands the line as it does with all commands, or returns an error. This saves
// time at the start of mcpx: kong needs milliseconds to read the fields of all commands.
func meant(args []string) []commandRow {
	all := allCommands()
	if slices.ContainsFunc(args, func(arg string) bool {
		return arg == "help" || arg == "__complete" || strings.HasPrefix(arg, "--help") ||
			strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "h")
	}) {
		return all
	}
	named := slices.DeleteFunc(slices.Clone(all), func(c commandRow) bool { return !slices.Contains(args, c.name) })
	if len(named) == 0 {
		return all[:1] // serve
	}
	return named
}

// level is the name of a log level, in upper or lower case.
type level string

func (l *level) UnmarshalText(text []byte) error {
	*l = level(strings.ToLower(string(text)))
	return nil
}

// streams are the input and outputs of a command, and everything else that depends on the process in which the user started the
// command. If the command runs in the daemon, all this still belongs to the user's process, and not to the daemon.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // the field in is a terminal
	// screen formats text for out, errScreen for err.
	screen, errScreen terminal.Screen
	getenv            func(string) (string, bool)
	// absent means that the command works even if secrets that only a hosted mcpx needs are missing.
	absent bool
	// origin describes the process that sent the command to the daemon, and reloads receives the signals with which that process
	// asks the daemon to read the config again. Outside the daemon, both are zero.
	origin  app.Origin
	reloads <-chan os.Signal
	// began tells the daemon that a session with this app has begun. Its result ended must be called when the session ends. began
	// is nil outside the daemon.
	began func(*app.App) (ended func())
	// keep returns an app that several commands of the daemon share. Its result done must be called after use. keep is nil outside
	// the daemon.
	keep func(cfg *config.Config, profile app.Profile, names ...string) (a *app.App, done func(), err error)
}

func main() {
	roles.Play()
	memory.Tune()
	forgetEmptyVariables()
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: terminal.IsTerminal(os.Stdin),
		screen:   terminal.Of(os.Stdout, os.LookupEnv), errScreen: terminal.Of(os.Stderr, os.LookupEnv),
		getenv: os.LookupEnv,
	})
	stop()
	os.Exit(code)
}

// forgetEmptyVariables unsets those environment variables whose names begin with MCPX_ and whose values are empty. Compose files
// and ${X:-} often create such variables, and kong would treat them as flags with empty values.
func forgetEmptyVariables() {
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); value == "" && strings.HasPrefix(name, "MCPX_") {
			_ = os.Unsetenv(name)
		}
	}
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels. The second one ends the process; then the reaper, a
// helper process, kills the child processes of mcpx. On Windows, the system kills them.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // the goroutine ends with the process
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	// kong and JSON would replace such bytes. The argument is not quoted, as it may contain a secret.
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return report(s.err, &usageError{hintError{fmt.Sprintf("argument %d is not UTF-8", i+1), "convert it to UTF-8"}})
	}
	exited := -1
	out := &checkedWriter{Writer: s.out}
	s.out = out
	var c *cli
	var parser *kong.Kong
	parse := func(commands []commandRow) (*kong.Context, error) {
		c = new(cli)
		parser = newParser(c, commands,
			kong.Writers(s.out, s.err),
			kong.Exit(func(code int) { exited = code }),
			kong.DefaultEnvars("MCPX"),
			kong.BindTo(ctx, (*context.Context)(nil)),
			kong.Bind(s),
			kong.BindToProvider(s.system),
		)
		return parser.Parse(args)
	}
	parsed, err := parse(meant(args))
	if err != nil && exited < 0 { // the error and its hint must come from a parser that knows all commands
		parsed, err = parse(allCommands())
	}
	if exited >= 0 { // kong has printed the help, or the version
		return exited
	}
	if err != nil {
		text := strings.Replace(err.Error(), `, did you mean "-h"?`, "", 1) // kong suggests -h for any unknown short flag
		text = strings.Replace(text, `but got "EOL" (<EOL>)`, "after it", 1)
		fmt.Fprintln(s.err, "mcpx: error:", text)
		fmt.Fprintln(s.err, "mcpx: hint:", usageHint(parser, args))
		return exitUsage
	}
	return conclude(ctx, s, parsed.Run(c))
}

// newParser returns the parser of command lines, which puts what it reads into c.
func newParser(c *cli, commands []commandRow, more ...kong.Option) *kong.Kong {
	for _, command := range commands {
		more = append(more, kong.DynamicCommand(command.name, command.help, "", command.run, command.tag))
	}
	return kong.Must(c, append(more,
		kong.Name("mcpx"),
		kong.Description("One MCP server in front of many: the agent sees two tools, inspect and exec.\n\n"+
			examples("mcpx demo", "mcpx check --config ~/.cursor/mcp.json",
				"mcpx exec time get_current_time timezone=UTC", "mcpx help exec")),
	)...)
}

// conclude reports how a command has ended, and returns the exit code.
func conclude(ctx context.Context, s streams, err error) int {
	out, checked := s.out.(*checkedWriter)
	switch {
	case checked && errors.Is(out.err, syscall.EPIPE): // only in the daemon; elsewhere SIGPIPE has ended the process
		return exitPipe
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		err = errors.New("interrupted")
	case err == nil && checked && out.err != nil:
		err = fmt.Errorf("writing the output: %w", out.err)
	}
	return report(s.err, err)
}

// checkedWriter remembers the first error of a write, because a command whose output is lost must not exit with 0. Only one
// goroutine may use it. The command serve handles write errors itself, so it takes the writer out of the checkedWriter.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// report prints an error with its hint, and returns the exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFailed) {
		return exitFailed
	}
	if errors.Is(err, errConfigFailed) {
		return exitConfig
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit)
	}
	var faults *config.Faults
	if errors.As(err, &faults) {
		before, _, _ := strings.Cut(err.Error(), faults.Error()) // such as "nothing was written: "
		for _, fault := range faults.List {
			fmt.Fprintf(w, "mcpx: error: %s%s: %s\n", before, faults.File, fault)
		}
	} else {
		fmt.Fprintln(w, "mcpx: error:", err)
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		fmt.Fprintln(w, "mcpx: hint:", hinted.Hint())
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	var missing *config.Error
	var syntax *config.SyntaxError
	if faults != nil || errors.As(err, &missing) || errors.As(err, &syntax) {
		return exitConfig
	}
	return exitFailed
}

// errFailed makes mcpx exit with 1 and print no error, because the command has printed the reason.
var errFailed = errors.New("failed")

// exitError is the exit code of a command that the daemon has run. The daemon has already printed everything else.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// errConfigFailed makes mcpx exit with 2 and print no error, because the command has printed the faults of the config.
var errConfigFailed = errors.New("config fault")
