package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command; without it, all commands are listed."`
}

func (cmd *helpCommand) Help() string { return examples("mcpx help", "mcpx help exec") }

// Run prints the same as --help.
func (cmd *helpCommand) Run(parsed *kong.Context) error {
	if len(cmd.Command) > 0 { // without a command, kong would choose the default command serve
		asked, err := kong.Trace(parsed.Kong, cmd.Command)
		if err != nil {
			return err
		}
		if asked.Error != nil || asked.Selected() == nil {
			text := fmt.Sprintf("there is no command %q", strings.Join(cmd.Command, " "))
			return &usageError{hintError{text, usageHint(parsed.Kong, cmd.Command)}}
		}
	}
	_, _ = parsed.Kong.Parse(append(cmd.Command, "--help")) // prints the help; an error says that something is missing
	return nil
}

// examples lists command lines for a help text.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}

// otherWords maps command names of other programs to ours.
var otherWords = map[string]string{
	"list": "check", "ls": "check", "status": "check", "test": "check",
	"call": "exec", "install": "add", "search": "inspect", "tools": "inspect",
	"uninstall": "remove", "rm": "remove",
}

// otherFlags maps flags to advice. They are flags of other programs, from which users move to mcpx.
var otherFlags = map[string]string{
	"--gui": pageHint, "--open": pageHint, "--desktop": pageHint,
	"--host": httpHint, "--port": httpHint,
}

const (
	pageHint = "mcpx ui opens the page of the servers in a browser"
	httpHint = "mcpx serve --http 127.0.0.1:8000 serves over HTTP; the endpoint is /mcp"
)

// serveHint returns advice for a command line that was written for an older version of mcpx, or for another program from which the
// user moves to mcpx. It returns "" if it has no advice. If the first argument that is not a flag does not end in .json, it may be
// a command. serveHint then ignores this argument and all after it.
func serveHint(args []string, line typedLine) string {
	file := ""
	if len(line.positional) > 0 {
		if file = line.positional[0]; !strings.HasSuffix(file, ".json") {
			file, args = "", args[:line.at[0]]
		}
	}
	for _, arg := range args {
		if name, _, _ := strings.Cut(arg, "="); otherFlags[name] != "" {
			return otherFlags[name]
		}
	}
	if file != "" {
		return "mcpx " + terminal.CommandLine("--config", file) + " serves the servers of that file"
	}
	return ""
}

// usageHint returns advice for a user who has given a wrong command line. The advice is never empty.
func usageHint(parser *kong.Kong, args []string) string {
	names, line := commands(parser), readLine(parser.Model.Node, args)
	first := line.node.Path() // such as "token new"
	if line.node == parser.Model.Node && len(line.positional) > 0 {
		first = line.positional[0] // a word that is no command
	}
	if line.node == parser.Model.Node || first == "serve" {
		if hint := serveHint(args, line); hint != "" {
			return hint
		}
	}
	switch {
	case first == "add" && len(line.at) > 1 && line.at[1] < len(args)-1 && !slices.Contains(args, "--") && !strings.HasPrefix(args[line.at[1]-1], "-"):
		at := line.at[1]
		hint := "put -- before " + args[at] + ": mcpx " + terminal.CommandLine(slices.Insert(slices.Clone(args), at, "--")...)
		if own := flagOf(line.node, args[at+1:]); own != "" { // the program may have this flag too
			hint += "; if " + own + " is for mcpx, put it before --"
		}
		return hint
	case len(args) > 0 && strings.EqualFold(args[0], "-v"):
		return "mcpx --version prints the version"
	case first == "add" && !slices.Contains(args, "--"):
		return "mcpx help add shows its usage; write a program and its arguments after --"
	case line.node != parser.Model.Node && !line.node.Hidden:
		return fmt.Sprintf("mcpx help %s shows its usage", first)
	case first != "":
		near := sanitize.Nearest(first, names)
		if other := otherWords[first]; other != "" {
			near = []string{other}
		}
		if len(near) > 0 {
			return fmt.Sprintf("did you mean mcpx %s? mcpx help lists the commands", near[0])
		}
	}
	return "mcpx help lists the commands and flags"
}

// commands returns the names of all commands that are not hidden.
func commands(parser *kong.Kong) (names []string) {
	for _, node := range parser.Model.Children {
		if !node.Hidden {
			names = append(names, node.Name)
		}
	}
	return names
}

// flagOf returns the first of words that is also a long flag of this command of mcpx, without its value; "" if there is none.
func flagOf(command *kong.Node, words []string) string {
	var known []string
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		known = append(known, "--"+flag.Name)
	}
	for _, word := range words {
		if name, _, _ := strings.Cut(word, "="); slices.Contains(known, name) {
			return name
		}
	}
	return ""
}
