package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/app"
	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// forMe sends the user's token to a hosted mcpx, which answers with the address of a page and a code. The user types the code into
// the page. That proves that the user of the browser is the principal of the token. Without a code in the answer, the user has to
// sign in on the page.
func (cmd *loginCommand) forMe(ctx context.Context, s streams) error {
	switch {
	case cmd.For == "" || cmd.URL == "":
		return &usageError{hintError{"--for me and --url go together", "mcpx login SERVER --for me --url https://HOST"}}
	case !netguard.Safe(cmd.URL):
		return &usageError{hintError{"--url must be https://, or on this machine: the token would be sent unencrypted", "mcpx login SERVER --for me --url https://HOST"}}
	}
	token := cmd.Token
	if token == "" {
		var err error
		if token, err = app.Secrets().Get(ctx, "login"); err != nil {
			return &hintError{"there is no token: " + err.Error(), "--token TOKEN, MCPX_LOGIN_TOKEN, or mcpx secret set login"}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body, err := json.Marshal(map[string]string{"server": cmd.Server})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(cmd.URL, "/")+"/connect/code", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	web := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := web.Do(req)
	if err != nil {
		return fmt.Errorf("asking %s: %w", cmd.URL, netguard.Cause(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", cmd.URL, resp.Status, sanitize.Line(string(data), 300))
	}
	var answer struct{ Code, URL, Principal string }
	if err := json.Unmarshal(data, &answer); err != nil || !netguard.Safe(answer.URL) {
		return fmt.Errorf("%s does not answer as mcpx does", cmd.URL)
	}
	fmt.Fprintf(s.out, "log in to %s as %s with a browser:\n\n%s\n\n", cmd.Server, sanitize.Line(answer.Principal, 200), sanitize.Line(answer.URL, 0))
	if cmd.NoBrowser || openBrowser(ctx, nil, answer.URL) != nil {
		fmt.Fprintln(s.out, "Open the address yourself.")
	}
	if answer.Code == "" {
		fmt.Fprintln(s.out, "The page asks you to sign in.")
		return nil
	}
	fmt.Fprintf(s.out, "The page asks for this code, which lasts 10 minutes. Give it to nobody:\n\n%s\n", sanitize.Line(answer.Code, 0))
	return nil
}
