package main

import (
	"fmt"
	"strings"

	"mcpx/internal/setup"
)

type addCommand struct {
	Name   string   `arg:"" help:"What the server is to be called."`
	Target []string `arg:"" name:"command-or-url" help:"The program and its arguments, after --; or the URL of a remote server."`
	Env    []string `env:"-" help:"An environment variable of the program." placeholder:"KEY=VALUE" sep:"none"`
	Header []string `env:"-" help:"A header for the remote server." placeholder:"KEY=VALUE" sep:"none"`
	Type   string   `help:"The transport: stdio, http, sse or websocket; found out if it is not given." placeholder:"TYPE" enum:",stdio,http,sse,websocket" default:""`
}

// Help has the examples.
func (cmd *addCommand) Help() string {
	return `Comments and order of the config stay. The config is made if there is none, readable by you only.

` + examples(
		"mcpx add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents",
		"mcpx add notes --env 'NOTES_TOKEN=${NOTES_TOKEN}' -- uvx notes-mcp",
		"mcpx add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'",
	)
}

// Run adds the server.
func (cmd *addCommand) Run(c *cli, s streams) error {
	entry, err := cmd.entry()
	if err != nil {
		return err
	}
	file, err := c.editConfig(s, func(data []byte) ([]byte, error) { return setup.AddServer(data, cmd.Name, entry) })
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "added %s to %s\ntry it: mcpx check\n", cmd.Name, file)
	return nil
}

func (cmd *addCommand) entry() (setup.Entry, error) {
	entry := setup.Entry{Type: cmd.Type}
	first := cmd.Target[0]
	scheme, _, isURL := strings.Cut(first, "://")
	isURL = isURL && len(cmd.Target) == 1 && !strings.ContainsAny(scheme, `/\ `)
	var err error
	if isURL {
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
		return entry, &hintError{"the program and its arguments are in one word", fmt.Sprintf("mcpx add %s -- %s", cmd.Name, first)}
	}
	entry.Command, entry.Args = first, cmd.Target[1:]
	entry.Env, err = keyValues("--env", cmd.Env)
	return entry, err
}

// keyValues reads KEY=VALUE, and for headers KEY: VALUE.
func keyValues(flag string, list []string) (map[string]string, error) {
	all := map[string]string{}
	for _, one := range list {
		at := strings.IndexByte(one, '=')
		if colon := strings.IndexByte(one, ':'); flag == "--header" && colon > 0 && (at < 0 || colon < at) {
			at = colon
		}
		if at <= 0 {
			// The error leaves out the value, which may be a secret.
			return nil, &hintError{flag + " needs KEY=VALUE", flag + " 'KEY=VALUE'"}
		}
		all[strings.TrimSpace(one[:at])] = strings.TrimLeft(one[at+1:], " ")
	}
	return all, nil
}
