package config

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"mcpx/internal/base/conf"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden parses the section config.json of each archive. The section env has environment variables, and the other
// sections are files. The result must equal the section want.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string][]byte{}
			for _, f := range archive.Files {
				sections[f.Name] = f.Data
			}
			got := outcome(Parse("config.json", sections["config.json"], Options{
				Getenv:     envOf(string(sections["env"])),
				Executable: "/opt/mcpx/mcpx-dev",
				ReadFile: func(path string) ([]byte, error) {
					if data, ok := sections[filepath.ToSlash(path)]; ok {
						return data, nil
					}
					return nil, errors.New("no such file or directory")
				},
			}))
			if *update {
				writeGolden(t, file, archive, got)
				return
			}
			if diff := cmp.Diff(string(sections["want"]), got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func writeGolden(t *testing.T, file string, archive *txtar.Archive, want string) {
	t.Helper()
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
	archive.Files = append(archive.Files, txtar.File{Name: "want", Data: []byte(want)})
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// envOf returns a function like os.LookupEnv for the variables in lines, which have the form KEY=VALUE.
func envOf(lines string) func(string) (string, bool) {
	vars := map[string]string{}
	for line := range strings.Lines(lines) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			vars[key] = value
		}
	}
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// outcome formats the results of Parse.
func outcome(c *Config, err error) string {
	var b strings.Builder
	if err != nil {
		return fmt.Sprintf("error %T\n%v\n", err, err)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, f := range c.ServerFaults() {
		fmt.Fprintf(&b, "fault: %s\n", f)
	}
	for i := range c.Servers {
		writeServer(&b, &c.Servers[i])
	}
	// Global keys are included only if they differ from their defaults.
	was, is := fields(defaults(c.Path)), fields(c)
	for i := range is {
		if is[i] != was[i] {
			fmt.Fprintf(&b, "global %s\n", is[i])
		}
	}
	return b.String()
}

func writeServer(b *strings.Builder, s *Server) {
	fmt.Fprintf(b, "server %s %s\n", s.Name, s.Type)
	line := func(label string, value any, show bool) {
		if show {
			fmt.Fprintf(b, "  %s: %v\n", label, value)
		}
	}
	line("command", fmt.Sprintf("%q %q", s.Command, s.Args), s.Command != "")
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		line("env", key+"="+s.Env[key], true)
	}
	line("cwd", s.Cwd, s.Cwd != "")
	line("url", s.URL, s.URL != "")
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		line("header", key+": "+s.Headers[key], true)
	}
	d := serverDefaults()
	line("disabled", "", !s.Enabled)
	line("description", s.Description, s.Description != "")
	line("allow", s.Tools.Allow, s.Tools.Allow != nil)
	line("deny", s.Tools.Deny, s.Tools.Deny != nil)
	line("read_only", "", s.ReadOnly)
	line("confirm", s.Confirm, s.Confirm != conf.ConfirmNone)
	line("pin", map[conf.Pin]string{conf.PinOff: "off", conf.PinBlock: "block"}[s.Pin], s.Pin != conf.PinWarn)
	line("overrides", s.Overrides, s.Overrides != nil)
	line("validate", s.Validate, s.Validate != d.Validate)
	line("verbatim", s.Verbatim, s.Verbatim != nil)
	line("connect_timeout", s.ConnectTimeout, s.ConnectTimeout != d.ConnectTimeout)
	line("start", s.Start, s.Start != "eager")
	line("stop_idle", s.StopIdle, s.StopIdle != 0)
	line("call_timeout", s.CallTimeout, s.CallTimeout != d.CallTimeout)
	line("idle_timeout", s.IdleTimeout, s.IdleTimeout != 0)
	line("tool_timeouts", s.ToolTimeouts, s.ToolTimeouts != nil)
	line("session_idle", s.SessionIdle, s.SessionIdle != d.SessionIdle)
	line("max_concurrency", s.MaxConcurrency, s.MaxConcurrency != 0)
	line("session", s.Session, s.Session != d.Session)
	line("share", s.Share, s.Share != "")
	line("framing", s.Framing, s.Framing != d.Framing)
	line("protocol", s.Protocol, s.Protocol != d.Protocol)
	line("fault", s.Fault, s.Fault != "")
	line("secrets", fmt.Sprintf("%q", s.Secrets), len(s.Secrets) > 0)
	line("of them credentials", fmt.Sprintf("%q", s.Credentials), len(s.Secrets) > 0)
}

func fields(c *Config) []string {
	return []string{
		fmt.Sprint("schema_compression ", c.SchemaCompression), fmt.Sprint("toon_compression ", c.ToonCompression), fmt.Sprint("result_forms ", c.ResultForms),
		fmt.Sprint("max_description_len ", c.MaxDescriptionLen), fmt.Sprint("structured_content ", c.StructuredContent), fmt.Sprint("short_argument_names ", c.ShortArgumentNames),
		fmt.Sprint("catalogue_token_budget ", c.CatalogueTokenBudget), fmt.Sprint("catalogue_char_limit ", c.CatalogueCharLimit),
		fmt.Sprint("result_token_limit ", c.ResultTokenLimit), fmt.Sprint("result_preview_tokens ", c.ResultPreviewTokens), fmt.Sprint("max_message_bytes ", c.MaxMessageBytes),
		fmt.Sprint("max_concurrency ", c.MaxConcurrency), fmt.Sprint("startup_wait ", c.StartupWait),
		fmt.Sprint("exec_wait ", c.ExecWait), fmt.Sprint("shutdown_grace ", c.ShutdownGrace),
		fmt.Sprint("resources ", c.Resources, ", prompts ", c.Prompts),
		fmt.Sprint("disabled_tools ", c.DisabledTools), "clients " + clients(c.Clients),
		fmt.Sprintf("health_check {Enabled:%t Interval:%s Timeout:%s FailureThreshold:%d}", c.HealthCheck, c.Health.Interval, c.Health.Timeout, c.Health.Threshold),
		fmt.Sprint("view ", c.View), fmt.Sprint("read_door ", c.ReadDoor), fmt.Sprint("apps ", c.Apps), fmt.Sprintf("groups %+v", c.Groups),
		fmt.Sprint("separator ", c.Separator), fmt.Sprint("prefix ", c.Prefix), fmt.Sprint("compress ", c.Compress), fmt.Sprint("sse ", c.SSE), fmt.Sprint("session_timeout ", c.SessionTimeout), fmt.Sprintf("limits %+v", c.Limits),
		fmt.Sprint("log ", c.LogLevel, " ", c.LogFormat),
	}
}

// clients formats the rules for clients. It leaves out fields that no key of the file sets.
func clients(rules []conf.ClientRule) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = fmt.Sprintf("{Glob:%s StructuredContent:%s DescriptionChars:%d ResultChars:%d Text:%s Forms:%d CallWait:%s}",
			r.Name, r.Structured, r.DescriptionChars, r.ResultChars, r.Text, r.Forms, r.CallWait)
	}
	return fmt.Sprint(texts)
}
