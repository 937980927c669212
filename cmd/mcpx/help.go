package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/base/sanitize"
)

type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command; without it, all of them are listed."`
}

// Help has the examples.
func (cmd *helpCommand) Help() string { return examples("mcpx help", "mcpx help exec") }

// Run prints the same as --help.
func (cmd *helpCommand) Run(parsed *kong.Context) error {
	if len(cmd.Command) == 0 { // an empty command would be serve, the default
		_, _ = parsed.Kong.Parse([]string{"--help"}) // an error: after the help there is no command
		return nil
	}
	asked, err := kong.Trace(parsed.Kong, cmd.Command)
	if err != nil {
		return err
	}
	if asked.Error != nil || asked.Selected() == nil {
		text := fmt.Sprintf("there is no command %q", strings.Join(cmd.Command, " "))
		return &usageError{hintError{text, usageHint(parsed.Kong, cmd.Command)}}
	}
	return asked.PrintUsage(false)
}

// examples are command lines below a help text.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}

// otherWords are what other programs call our commands.
var otherWords = map[string]string{
	"list": "check", "ls": "check", "status": "check", "test": "check",
	"call": "exec", "install": "add", "search": "inspect", "tools": "inspect",
	"uninstall": "remove", "rm": "remove",
}

// usageHint is a hint for a command line that is wrong.
func usageHint(parser *kong.Kong, args []string) string {
	names := commands(parser)
	first := ""
	if i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
		first = args[i]
	}
	switch {
	case len(args) > 3 && first == "add" && !slices.Contains(args, "--") && !strings.HasPrefix(args[1]+args[2], "-"):
		return fmt.Sprintf("put -- before %s: mcpx add %s -- %s", args[2], args[1], strings.Join(args[2:], " "))
	case len(args) > 0 && strings.EqualFold(args[0], "-v"):
		return "mcpx --version prints the version"
	case first == "add" && !slices.Contains(args, "--"):
		return "mcpx help add says how it is called; a program and its arguments stand after --"
	case slices.Contains(names, first):
		return fmt.Sprintf("mcpx help %s says how it is called", first)
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

// commands are the names of all commands that are not hidden.
func commands(parser *kong.Kong) (names []string) {
	for _, node := range parser.Model.Children {
		if !node.Hidden {
			names = append(names, node.Name)
		}
	}
	return names
}
