package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/control"
)

type loginsCommand struct {
	List loginsListCommand `cmd:"" default:"withargs" help:"Print who is logged in."`
	End  loginsEndCommand  `cmd:"" help:"End logins: their people and clients are out at once."`
}

func (cmd *loginsCommand) Help() string {
	return "Who has logged in through mcpx (auth.front), with which client, and who has an account of their own at a server (oauth.per), " +
		"also at one that has left the config. The running mcpx that reads the config is asked; if none runs, " +
		"the logins that it has kept. In a cluster any replica knows all, and the command runs where one of them runs.\n\n" +
		examples("mcpx logins", "mcpx logins end 3f9c21a07b", "mcpx logins end ann@login.example.com")
}

type loginsListCommand struct {
	JSON bool `name:"json" help:"Print them as JSON."`
}

func (cmd *loginsListCommand) Help() string { return (&loginsCommand{}).Help() }

func (cmd *loginsListCommand) Run(ctx context.Context, c *cli, s streams) error {
	all, err := loginsOf(ctx, c, s, nil)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return printJSON(s.out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(s.err, "nobody is logged in")
		return nil
	}
	printLogins(s, all)
	return nil
}

type loginsEndCommand struct {
	Which []string `arg:"" help:"The ID of a login, or the name of a principal for all its logins; mcpx logins prints both." sep:"none"`
}

func (cmd *loginsEndCommand) Run(ctx context.Context, c *cli, s streams) error {
	ended, err := loginsOf(ctx, c, s, cmd.Which)
	if len(ended) > 0 {
		printLogins(s, ended)
		fmt.Fprintf(s.err, "%s ended; a person who is still welcome at the issuer can log in again, unless auth.rights or auth.front.allow say no\n",
			plural(len(ended), "login has", "logins have"))
	}
	if err != nil {
		return err
	}
	for _, one := range cmd.Which {
		if !slices.ContainsFunc(ended, func(l app.Login) bool { return l.ID == one || l.Principal == one }) {
			err = cmp.Or(err, error(&hintError{"there is no login " + one, c.hint("logins") + " prints the IDs and the principals"}))
		}
	}
	return err
}

func printLogins(s streams, all []app.Login) {
	rows := []terminal.Row{{Cells: []string{"NAME", "ID", "PRINCIPAL", "CLIENT", "BEGAN", "RENEWED"}}}
	at := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
	for _, l := range all {
		with := l.Client
		if l.Server != "" {
			with = "account at " + l.Server
		}
		cells := []string{s.screen.Text(cmp.Or(l.Name, l.Email, "-")), l.ID, s.screen.Text(l.Principal), s.screen.Text(with), at(l.Began), at(l.Renewed)}
		rows = append(rows, terminal.Row{Cells: cells})
	}
	fmt.Fprint(s.out, s.screen.Table(len(rows[0].Cells), rows))
}

// loginsOf returns the logins of the running mcpx processes that use the config. If none of them can have logins, it returns the
// logins that are stored on this machine. If end is not empty, loginsOf ends the logins whose IDs or principals' names are in end,
// and returns only those. Then it is an error if a process does not answer, because this process may still accept the ended logins.
func loginsOf(ctx context.Context, c *cli, s streams, end []string) ([]app.Login, error) {
	path, err := c.findConfig(s)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	mine, _, silent := readers(ctx, path)
	all, asked, err := loginsOfRunning(ctx, mine, end)
	if !asked && err == nil {
		all, err = storedLogins(ctx, c, s, end)
	}
	switch {
	case silent == 0 || err != nil:
	case len(end) > 0:
		err = &hintError{noAnswer(silent) + ": if it serves this config, its open connections and tokens go on for up to 10 minutes",
			"run the command again when it answers, or restart it"}
	default:
		fmt.Fprintf(s.err, "mcpx: warning: %s\n", noAnswer(silent))
	}
	return all, err
}

// storedLogins is [loginsOf] for the logins that are stored on this machine.
func storedLogins(ctx context.Context, c *cli, s streams, end []string) ([]app.Login, error) {
	cfg, err := c.loadServers(ctx, s)
	if err != nil {
		return nil, err
	}
	keys := make(map[string][]string)
	if cfg.Auth != nil && cfg.Auth.Front != nil {
		keys["auth.front.key"] = cfg.Auth.Front.Keys
	}
	if cfg.Cluster != nil {
		keys["cluster.key"], keys["cluster.nats"] = cfg.Cluster.Keys, cfg.Cluster.NATS
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		for _, key := range keys[name] {
			if _, rest, unset := strings.Cut(key, "${"); unset {
				variable, _, _ := strings.Cut(rest, "}")
				return nil, &hintError{name + " has no value here: ${" + variable + "}", "set the variable: the logins are stored with it"}
			}
		}
	}
	stored, err := app.OpenLogins(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer stored.Close()
	if len(end) == 0 {
		return stored.Logins(ctx)
	}
	return stored.EndLogins(ctx, end)
}

// loginsOfRunning asks each of the given processes for its logins, because processes share their logins only in a cluster. If end
// is not empty, the processes end the logins that end names. possible is false if none of the processes can have logins.
func loginsOfRunning(ctx context.Context, processes []*control.Running, end []string) (all []app.Login, possible bool, err error) {
	for _, one := range processes {
		out, failed := one.Logins(ctx, control.LoginsQuery{End: end})
		switch {
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("%d (%s): %w", one.PID, one.Serves, failed))
			continue
		case out.None:
			continue
		case out.Failed != "":
			err = errors.Join(err, fmt.Errorf("%d (%s): %s", one.PID, one.Serves, out.Failed))
		}
		possible = true
		var some []app.Login
		if failed := json.Unmarshal(out.Logins, &some); failed != nil {
			return all, possible, failed
		}
		for _, l := range some {
			if !slices.ContainsFunc(all, func(other app.Login) bool { return other.ID == l.ID }) {
				all = append(all, l)
			}
		}
	}
	return all, possible, err
}

// logins answers the request of mcpx logins. If the query names logins, it ends and returns these logins; otherwise it returns all
// open logins.
func (r *reloading) logins(ctx context.Context, query control.LoginsQuery) control.LoginsAnswer {
	all, has, err := r.app.Logins(ctx)
	if err == nil && !has {
		return control.LoginsAnswer{None: true}
	}
	out := control.LoginsAnswer{}
	if err != nil {
		out.Failed = err.Error()
	}
	if len(query.End) > 0 {
		if all, err = r.app.EndLogins(ctx, query.End); err != nil {
			out.Failed = err.Error()
		}
	}
	if out.Logins, err = json.Marshal(all); err != nil {
		return control.LoginsAnswer{Failed: err.Error()}
	}
	return out
}
