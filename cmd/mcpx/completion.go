package main

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"mcpx/internal/app"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
)

// The completion scripts call mcpx __complete to get candidates, so the scripts need no update when the
// commands change.
//
//go:embed completion
var completionScripts embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

func (cmd *completionCommand) Help() string {
	return "Completes the servers and tools that mcpx has seen before; it starts nothing.\n\n" + examples(
		"source <(mcpx completion bash)                         # in ~/.bashrc",
		"source <(mcpx completion zsh)                          # in ~/.zshrc, after compinit",
		"mcpx completion fish | source                          # in ~/.config/fish/config.fish",
		"mcpx completion powershell | Out-String | iex          # in $PROFILE")
}

func (cmd *completionCommand) Run(s streams) error {
	script, err := completionScripts.ReadFile("completion/" + cmd.Shell)
	fmt.Fprint(s.out, string(script))
	return err
}

// completeCommand is the command that the completion scripts call. The scripts put a colon before the word to
// complete, because some shells drop empty arguments.
type completeCommand struct {
	Word   string   `arg:""`
	Before []string `arg:"" optional:"" passthrough:""`
}

// Run prints one candidate per line, followed by a tab and a description. If it prints none, the shell
// completes file names.
func (cmd *completeCommand) Run(c *cli, parsed *kong.Context, s streams) error {
	word := strings.TrimPrefix(cmd.Word, ":")
	if len(cmd.Before) > 0 && cmd.Before[0] == "--" {
		cmd.Before = cmd.Before[1:]
	}
	l := readLine(parsed.Model.Node, cmd.Before)
	switch {
	case l.flag != nil:
		for _, value := range l.flag.EnumSlice() {
			offer(s.out, word, value, "")
		}
	case strings.HasPrefix(word, "-"):
		for _, group := range l.node.AllFlags(true) {
			for _, flag := range group {
				offer(s.out, word, "--"+flag.Name, flag.Help)
			}
		}
	case len(l.node.Children) > 0:
		offerCommands(s.out, word, l.node)
	default:
		cmd.arguments(c, l, parsed.Model.Node, word, s)
	}
	return nil
}

func offerCommands(w io.Writer, word string, parent *kong.Node) {
	for _, node := range parent.Children {
		if !node.Hidden {
			offer(w, word, node.Name, node.Help)
		}
	}
}

func offer(w io.Writer, word, candidate, help string) {
	if candidate != "" && strings.HasPrefix(candidate, word) && plain(candidate) {
		fmt.Fprintf(w, "%s\t%s\n", candidate, sanitize.Line(help, 80))
	}
}

// plain reports whether shells take a text as one word. A shell inserts a candidate into the command line as it is, and servers
// choose the names of tools and arguments: a part of a name could be a command, or control the terminal.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return !unicode.In(c, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_-./:@=+,%", c)
	})
}

// typedLine is a command line up to the word to complete.
type typedLine struct {
	node       *kong.Node // the command, or the root
	positional []string   // the arguments before the word to complete, from the first word on that is no command
	at         []int      // their indexes in the line
	flag       *kong.Flag // the flag whose value is to be completed; nil if the word is not the value of a flag
	config     string     // the value of --config
}

func readLine(root *kong.Node, words []string) typedLine {
	l := typedLine{node: root}
	for i, word := range words {
		name, value, joined := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch {
		case l.flag != nil:
			if l.flag.Name == "config" {
				l.config = word
			}
			l.flag = nil
		case strings.HasPrefix(word, "--"):
			if joined && name == "config" {
				l.config = value
			}
			for _, group := range l.node.AllFlags(false) {
				for _, flag := range group {
					if flag.Name == name && !joined && !flag.IsBool() {
						l.flag = flag
					}
				}
			}
		case len(word) > 1 && word[0] == '-': // short flags take no values
		case len(l.positional) == 0 && child(l.node, word) != nil: // after a word that is no command, no command can follow
			l.node = child(l.node, word)
		default:
			l.positional, l.at = append(l.positional, word), append(l.at, i)
		}
	}
	return l
}

// child returns the command below parent that has the name, or nil.
func child(parent *kong.Node, name string) *kong.Node {
	at := slices.IndexFunc(parent.Children, func(node *kong.Node) bool { return node.Name == name })
	if at < 0 {
		return nil
	}
	return parent.Children[at]
}

// withServer are the commands whose first argument is a server of the config.
var withServer = []string{"inspect", "exec", "remove", "enable", "disable", "login", "logout", "logs", "restart"}

// arguments prints candidates for the next argument of a command.
func (cmd *completeCommand) arguments(c *cli, l typedLine, root *kong.Node, word string, s streams) {
	at := len(l.positional)
	switch name := l.node.Name; {
	case name == "help":
		for _, command := range l.positional {
			root = cmp.Or(child(root, command), root)
		}
		offerCommands(s.out, word, root)
	case (name == "connect" || name == "disconnect") && at == 0:
		for _, client := range setup.Clients() {
			offer(s.out, word, client.ID, client.Name)
		}
	case name == "completion" && at == 0:
		for _, shell := range l.node.Positional[0].EnumSlice() {
			offer(s.out, word, shell, "")
		}
	case name == "check" || name == "lock", slices.Contains(withServer, name) && at == 0:
		for server := range cmd.servers(c, l, s) {
			offer(s.out, word, server.Name, server.Purpose())
			if name == "check" && strings.HasPrefix(word, server.Name+".") {
				offerTools(s.out, word, server.Name+".", server)
			}
		}
	case (name == "inspect" || name == "exec") && at == 1:
		for server := range cmd.servers(c, l, s) {
			if server.Name == l.positional[0] {
				offerTools(s.out, word, "", server)
			}
		}
	case name == "exec":
		for server := range cmd.servers(c, l, s) {
			if tool, ok := server.Tool(l.positional[1]); ok && server.Name == l.positional[0] {
				for _, property := range slices.Sorted(maps.Keys(properties(tool.InputSchema))) {
					offer(s.out, word, property+"=", "")
				}
			}
		}
	}
}

func offerTools(w io.Writer, word, prefix string, server *catalog.Server) {
	for i := range server.Tools {
		offer(w, word, prefix+server.Tools[i].Name, server.Tools[i].Description)
	}
}

// servers yields the servers of the config, with their tools from the disk cache. If the config cannot be
// read, it yields none: completion cannot report errors.
func (cmd *completeCommand) servers(c *cli, l typedLine, s streams) iter.Seq[*catalog.Server] {
	return func(yield func(*catalog.Server) bool) {
		if l.config != "" {
			c.Config = kong.ExpandPath(l.config)
		}
		s.terminal = true // completion runs in a terminal only
		path, err := c.findConfig(s)
		if err != nil {
			return
		}
		cfg, err := config.Load(path, s.reading())
		if err != nil {
			return
		}
		a, err := app.New(app.Options{Config: cfg, Profile: app.Command, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return
		}
		defer a.Close()
		snap := a.Executor.Catalogue(nil)
		for i := range snap.Servers {
			if !yield(&snap.Servers[i]) {
				return
			}
		}
	}
}
