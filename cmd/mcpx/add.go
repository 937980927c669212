package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/internal/desk/setup"
)

type addCommand struct {
	Name   string   `arg:"" help:"What the server is to be called."`
	Target []string `arg:"" name:"command-or-url" help:"The program and its arguments, after --; or the URL of a remote server."`
	Env    []string `env:"-" help:"An environment variable of the program." placeholder:"KEY=VALUE" sep:"none"`
	Header []string `env:"-" help:"A header for the remote server." placeholder:"KEY=VALUE" sep:"none"`
	Type   string   `help:"The transport: stdio, http or sse; detected if not given." placeholder:"TYPE" enum:",stdio,http,sse" default:""`
}

func (cmd *addCommand) Help() string {
	return `Comments and order of the config stay. If there is no config, one is made that only you can read.

` + examples(
		"mcpx add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents",
		"mcpx add notes --env 'NOTES_TOKEN=${NOTES_TOKEN}' -- uvx notes-mcp",
		"mcpx add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'",
	)
}

func (cmd *addCommand) Run(parsed *kong.Context, c *cli, s streams) error {
	if at := slices.Index(parsed.Args, "--"); at >= 0 && !slices.Contains(parsed.Args[:at], cmd.Name) {
		again := "mcpx add NAME -- " + strings.Join(parsed.Args[at+1:], " ")
		return &usageError{hintError{"the server has no name", "write the name before --: " + again}}
	}
	entry, err := cmd.entry()
	if err != nil {
		return err
	}
	file, err := c.editConfig(s, func(data []byte) ([]byte, error) { return setup.AddServer(data, cmd.Name, entry) })
	if err != nil {
		return err
	}
	try := "mcpx check"
	if c.Config != "" {
		try += " --config " + file
	}
	fmt.Fprintf(s.out, "added %s to %s\ntry it: %s\n", cmd.Name, file, try)
	return nil
}

func (cmd *addCommand) entry() (setup.Entry, error) {
	entry := setup.Entry{Type: cmd.Type}
	first := cmd.Target[0]
	scheme, _, isURL := strings.Cut(first, "://")
	isURL = isURL && len(cmd.Target) == 1 && !strings.ContainsAny(scheme, `/\ `)
	var err error
	if isURL {
		if scheme = strings.ToLower(scheme); scheme != "http" && scheme != "https" {
			return entry, &hintError{
				fmt.Sprintf("a remote server is reached over http or https, not %s", scheme),
				"mcpx add " + cmd.Name + " https://HOST/PATH",
			}
		}
		entry.URL = first
		if len(cmd.Env) > 0 {
			return entry, &hintError{"--env is for a program; a remote server has headers", "--header 'Authorization=Bearer ${TOKEN}'"}
		}
		entry.Headers, err = keyValues("--header", cmd.Header)
		return entry, err
	}
	if len(cmd.Header) > 0 {
		return entry, &hintError{"--header is for a remote server; a program has an environment", "--env 'TOKEN=${TOKEN}'"}
	}
	if len(cmd.Target) == 1 && strings.Contains(first, " ") && len(strings.Fields(first)) > 1 && !strings.ContainsAny(first, `/\"'`) {
		return entry, &hintError{"the program and its arguments are one word", fmt.Sprintf("mcpx add %s -- %s", cmd.Name, first)}
	}
	words := make([]string, len(cmd.Target))
	for i, word := range cmd.Target {
		if words[i], err = fromHere(word); err != nil {
			return entry, err
		}
	}
	entry.Command, entry.Args = words[0], words[1:]
	entry.Env, err = keyValues("--env", cmd.Env)
	return entry, err
}

// fromHere makes the paths ., ./x and ../x absolute if they exist, because clients do not start mcpx
// in the user's working folder.
func fromHere(word string) (string, error) {
	first, _, _ := strings.Cut(filepath.ToSlash(word), "/")
	if _, err := os.Stat(word); err != nil || first != "." && first != ".." {
		return word, nil
	}
	return filepath.Abs(word)
}

// keyValues reads KEY=VALUE, and for headers also KEY: VALUE. Its errors do not quote the words,
// which may hold a secret.
func keyValues(flag string, list []string) (map[string]string, error) {
	all := map[string]string{}
	for _, one := range list {
		at := strings.IndexByte(one, '=')
		if colon := strings.IndexByte(one, ':'); flag == "--header" && colon > 0 && (at < 0 || colon < at) {
			at = colon
		}
		if at <= 0 {
			return nil, &hintError{flag + " needs KEY=VALUE", flag + " 'KEY=VALUE'"}
		}
		key := strings.TrimSpace(one[:at])
		if strings.ContainsAny(key, " \t\r\n") {
			return nil, &hintError{flag + " needs KEY=VALUE, and a name has no spaces", flag + " 'KEY=VALUE'"}
		}
		all[key] = strings.TrimLeft(one[at+1:], " ")
	}
	return all, nil
}
