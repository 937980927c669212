package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/logins"
)

// loginTime is how long the user has to complete the login.
const loginTime = 10 * time.Minute

type loginCommand struct {
	Server    string `arg:"" help:"The server, as the config names it."`
	NoBrowser bool   `name:"no-browser" help:"Print the address only. After the login, paste the address where the browser ended."`
	New       bool   `help:"Register mcpx again, if the authorization server has forgotten it."`
	For       string `enum:",me" default:"" help:"me: log in to a server of a hosted mcpx (--url) as yourself, with the token of your agent." placeholder:"me"`
	URL       string `name:"url" help:"The hosted mcpx, https://HOST." placeholder:"URL"`
	Token     string `env:"MCPX_LOGIN_TOKEN" help:"The token with which your agent calls the hosted mcpx. Without it, the secret login of the keyring is used (mcpx secret set login)." placeholder:"TOKEN"`
}

func (cmd *loginCommand) Help() string {
	return "Opens the server's login page in a browser and keeps the tokens, encrypted with a key in the keyring of the system. " +
		"A running mcpx uses the login at once.\n\n" + examples("mcpx login github", "mcpx login github --no-browser", "mcpx login github --for me --url https://mcp.example.com")
}

func (cmd *loginCommand) Run(ctx context.Context, c *cli, s streams) error {
	if cmd.For != "" || cmd.URL != "" {
		return cmd.forMe(ctx, s)
	}
	store, server, err := loginServer(ctx, c, s, cmd.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTime, errors.New("ten minutes have passed"))
	defer cancel()
	options := logins.Options{New: cmd.New, Open: func(address string) { cmd.show(ctx, c, s, address) }}
	if cmd.NoBrowser {
		options.Pasted = pastedLines(s)
		options.Again = func(reason error) {
			fmt.Fprintf(s.out, "%v; paste the address of the page at the end\n", reason)
		}
	}
	made, err := store.Login(ctx, server, options)
	if err != nil {
		return c.hinted(err, "login", server.Name, "--new")
	}
	text := "logged in to " + server.Name + " at " + sanitize.Line(made.Issuer, 200)
	if len(made.Scopes) > 0 {
		text += " (" + sanitize.Line(strings.Join(made.Scopes, " "), 300) + ")"
	}
	fmt.Fprintln(s.out, text)
	if made.Unsealed != nil {
		fmt.Fprintln(s.err, "mcpx: warning: the login is kept unencrypted, readable by you only, as there is no keyring:", made.Unsealed)
	}
	if !made.Renews && !made.Expiry.IsZero() {
		fmt.Fprintf(s.out, "it cannot be renewed, and lasts until %s\n", made.Expiry.Local().Format("2006-01-02 15:04"))
	}
	return nil
}

// show prints the address of the login page and, unless the flag --no-browser is set, opens it in the user's browser.
func (cmd *loginCommand) show(ctx context.Context, c *cli, s streams, address string) {
	fmt.Fprintf(s.out, "log in with a browser:\n\n%s\n\n", address)
	if cmd.NoBrowser {
		fmt.Fprintln(s.out, "If the page at the end cannot be reached, paste its address here.")
	} else if openBrowser(ctx, nil, address) != nil {
		fmt.Fprintln(s.out, "No browser could be started; open the address yourself.")
	}
	again := []string{"login", cmd.Server, "--new"}
	if cmd.NoBrowser {
		again = append(again, "--no-browser")
	}
	fmt.Fprintln(s.out, "If the page does not know mcpx:", c.hint(again...))
}

// openBrowser starts the user's browser, without a shell, and does not wait for it. The browser gets the environment environ; nil
// means this process's environment.
func openBrowser(ctx context.Context, environ []string, address string) error {
	words, stdin := browserCommand(runtime.GOOS, address)
	browser := exec.CommandContext(context.WithoutCancel(ctx), words[0], words[1:]...)
	browser.Env = environ
	input, err := browser.StdinPipe()
	if err != nil {
		return err
	}
	defer input.Close()
	if err := browser.Start(); err != nil {
		return err
	}
	_, err = io.WriteString(input, stdin)
	go func() { _ = browser.Wait() }() // ends with the browser, or with this process
	return err
}

// browserCommand returns the command line that opens an address in the browser, and its stdin. On macOS the address is in stdin,
// because all users of a machine can read the arguments of processes. There, osascript passes the address to the browser in a
// message. On Linux that would not help, because the browser itself gets the address as an argument.
func browserCommand(system, address string) (words []string, stdin string) {
	switch system {
	case "darwin":
		return []string{"osascript", "-"}, "open location " + strconv.Quote(address)
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", address}, ""
	}
	return []string{"xdg-open", address}, ""
}

// pastedLines returns a channel that receives the lines with text that the user types or pastes. It is closed when the input ends.
func pastedLines(s streams) <-chan string {
	lines := make(chan string)
	go func() { // the goroutine ends with the input, or the process
		defer close(lines)
		for input := bufio.NewScanner(s.in); input.Scan(); {
			if text := strings.TrimSpace(input.Text()); text != "" {
				lines <- text
			}
		}
	}()
	return lines
}

type logoutCommand struct {
	Server string `arg:"" help:"The server, as the config names it."`
}

func (cmd *logoutCommand) Help() string {
	return "Tells the authorization server that the login is over, and deletes it.\n\n" + examples("mcpx logout github")
}

func (cmd *logoutCommand) Run(ctx context.Context, c *cli, s streams) error {
	store, server, err := loginServer(ctx, c, s, cmd.Server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	missing, unrevoked, err := store.Logout(ctx, server)
	switch {
	case err != nil:
		return err
	case missing:
		fmt.Fprintln(s.out, "there is no login to "+server.Name)
	case unrevoked != nil:
		fmt.Fprintf(s.out, "forgot the login to %s; it could not be revoked: %s\n", server.Name, sanitize.Line(unrevoked.Error(), 300))
	default:
		fmt.Fprintln(s.out, "logged out of "+server.Name)
	}
	return nil
}

// loginServer finds a server by its name. It returns an error if there is no such server, or if the server has a fault or does
// not support logins.
func loginServer(ctx context.Context, c *cli, s streams, name string) (*logins.Logins, logins.Server, error) {
	cfg, err := c.loadServers(ctx, s, name)
	if err != nil {
		return nil, logins.Server{}, err
	}
	for _, server := range cfg.Servers {
		switch {
		case server.Name != cfg.Served(name):
		case server.Fault != "":
			return nil, logins.Server{}, errors.New(server.Fault)
		case server.Type == config.WebSocket && server.URL == "":
			return nil, logins.Server{}, fmt.Errorf("%s has no url to log in to", name)
		case server.Type == config.Stdio:
			return nil, logins.Server{}, fmt.Errorf("%s is a local command and has no login; set its credentials in env", name)
		case server.OAuth.Off:
			return nil, logins.Server{}, fmt.Errorf("logins to %s are turned off (oauth)", name)
		default:
			return app.Logins(c.logger(s, "error", cfg.LogFormat)), app.LoginServer(server), nil
		}
	}
	return nil, logins.Server{}, noSuchServer(name, serverNames(cfg))
}
