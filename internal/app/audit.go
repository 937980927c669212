package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wiretrace"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
	"mcpx/internal/hosted/audit"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/request"
)

// auditor writes the audit trail. Until [App.OpenAudit] is called, and if the config has no trail, it writes nothing.
type auditor struct {
	trail    *audit.Trail // nil means that nothing is recorded
	required bool
	refusals limits.Lines
}

// OpenAudit opens the audit trail that the config names, if it names one. It must be called before clients are served, so that every call
// is recorded. The caller calls end after Close, because Close still writes records.
func (a *App) OpenAudit() (end func(), err error) {
	wanted := a.Config.Audit
	if wanted == nil {
		return func() {}, nil
	}
	anchor, err := AuditAnchor(wanted.File)
	if err != nil {
		a.log.Warn("the audit trail has no anchor: removed lines may not be found", "err", err)
	}
	trail, err := audit.Open(wanted.File, audit.Options{
		Anchor: anchor, Keys: bytesOf(wanted.Keys), MaxBytes: wanted.MaxBytes, Keep: wanted.Keep,
		About: []slog.Attr{slog.String("version", Version())}, Logger: a.log,
	})
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &unwritableError{"audit.file", wanted.File, failed}
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	a.auditor.trail, a.auditor.required = trail, wanted.Required
	if text, err := os.ReadFile(a.Config.Path); err == nil {
		_ = trail.Write(configLoaded, loaded("the start", a.Config, text)...)
	}
	return func() { a.auditor.close(a.log) }, nil
}

// unwritableError says that mcpx cannot write a file. key is the config key that names the file.
type unwritableError struct {
	key, file string
	err       error
}

func (e *unwritableError) Error() string {
	return fmt.Sprintf("%s: %s cannot be written: %v", e.key, e.file, e.err)
}

func (e *unwritableError) Unwrap() error { return e.err }

// Hint returns advice for the user.
func (e *unwritableError) Hint() string {
	if errors.Is(e.err, syscall.ENOSPC) {
		return "make room on the disk of " + e.file
	}
	return "set " + e.key + " to a file in a folder that mcpx may write, such as /var/lib/mcpx/" + filepath.Base(e.file) + "; a relative name begins at the config file"
}

// errNotRecorded is the error for a call that is refused because it cannot be recorded (config key audit.required).
var errNotRecorded = errors.New("the call was not made: the audit trail cannot be written, and this mcpx makes no calls without it; tell its administrator")

// admit is the middleware that records a message in the audit trail before the message is sent to the server. If audit.required
// is set, it records every message, and refuses a message that cannot be recorded. Otherwise it records only messages that may
// change something. At the end of each message, whether admit has recorded it or not, the method ended writes another record.
func (a *App) admit(next request.Handler) request.Handler {
	return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
		if err := a.auditor.began(r.Event); err != nil {
			return nil, err
		}
		return next(ctx, r)
	}
}

func (a *auditor) began(r *request.Event) error {
	if a.trail == nil || r.ReadOnly && !a.required || r.Admitted {
		return nil
	}
	r.Admitted = true              // a repeated attempt must not be recorded again
	var room [maxMembers]slog.Attr // allocated on the stack
	if a.trail.Write(audit.CallBegan, append(who(room[:0], r), slog.Int("argument_bytes", r.ArgumentBytes))...) != nil && a.required {
		return errNotRecorded
	}
	return nil
}

// ended records a message that has ended, or an HTTP request that was refused; r is the event of that message or request. It
// records every tools/call, but other messages only if they reached the middleware (see [request.Event.Attempted]).
func (a *auditor) ended(r *request.Event) {
	switch {
	case a.trail == nil:
		return
	case r.Refused != nil:
		a.refused(r)
		return
	case !r.Attempted:
		return
	}
	var room [maxMembers]slog.Attr
	_ = a.trail.Write(audit.CallEnded, append(costs(who(room[:0], r), r), // an error needs no handling: the Trail logs and counts it
		slog.String("outcome", r.Outcome), slog.Bool("read_only", r.ReadOnly), slog.Bool("known", r.Known || !r.IsCall()),
		slog.Duration("duration", r.Duration), slog.Duration("upstream", r.Upstream),
		slog.Int("argument_bytes", r.ArgumentBytes), slog.Int("bytes_received", r.ReceivedBytes), slog.Int("bytes_sent", r.SentBytes),
		slog.Int("tokens_received", r.Received), slog.Int("tokens_sent", r.Sent))...)
}

// costs appends the time and the tokens that the tool calls of a program have cost, added up by tool and outcome. A program is
// code that mcpx runs for a client. Each of its calls also has a record of its own.
func costs(attrs []slog.Attr, r *request.Event) []slog.Attr {
	if len(r.Costs) == 0 {
		return attrs
	}
	type kind struct{ server, tool, outcome string }
	var kinds []kind
	sums := make(map[kind]*request.Cost)
	counts := make(map[kind]int)
	for _, c := range r.Costs {
		k := kind{c.Server, c.Tool, c.Outcome}
		if sums[k] == nil {
			kinds, sums[k] = append(kinds, k), &request.Cost{}
		}
		counts[k]++
		sums[k].Duration += c.Duration
		sums[k].Received += c.Received
	}
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = fmt.Sprintf("%d %s.%s %s %.3f s %d tokens", counts[k], k.server, k.tool, k.outcome, sums[k].Duration.Seconds(), sums[k].Received)
	}
	return append(attrs, slog.String("calls", strings.Join(all, "; ")))
}

// maxMembers is the largest number of members (names with values) in the record of a call, not counting the members that the
// Trail adds to each record.
const maxMembers = 21

// who appends the members of a record that identify a message and its client.
func who(attrs []slog.Attr, r *request.Event) []slog.Attr {
	attrs = append(attrs, slog.Uint64("call", r.Number))
	if r.Program > 0 {
		attrs = append(attrs, slog.Uint64("program", r.Program))
	}
	method := r.Method
	if r.IsCall() {
		method = "" // the tool implies the method
	}
	for _, one := range [...]struct{ name, value string }{
		{"method", method}, {"server", r.Server}, {"tool", r.Tool}, {"item", r.Item},
		{"principal", r.Principal}, {"display", r.Display}, {"client", r.Client}, {"trace", r.Trace.ID},
	} {
		if one.value != "" {
			attrs = append(attrs, slog.String(one.name, one.value))
		}
	}
	return attrs
}

// Login records what has happened to a login, such as its beginning, its end or its refusal.
func (a *auditor) Login(l audit.Login) {
	if a.trail != nil {
		_ = a.trail.Write(l.Event, l.Attrs()...) // an error needs no handling: the Trail logs and counts it
	}
}

// changed records that a config was applied: who asked for it, the digest of its file, and how its text differs from the text of
// the previous config.
func (a *auditor) changed(c configChange) {
	if a.trail == nil {
		return
	}
	attrs := loaded(c.by, c.to, c.after)
	if changes := difference(c); changes != "" {
		attrs = append(attrs, slog.Any("changes", audit.Long(changes)))
	}
	_ = a.trail.Write(configLoaded, attrs...)
}

// configLoaded is the name of the record that says that a config has taken effect.
const configLoaded = "config_loaded"

// loaded returns the members of the record configLoaded. requester says who asked for the config; text is the text of the config file.
func loaded(requester string, cfg *config.Config, text []byte) []slog.Attr {
	sum := sha256.Sum256(text)
	return []slog.Attr{
		slog.String("by", requester), slog.String("file", cfg.Path), slog.String("sha256", hex.EncodeToString(sum[:])),
		slog.Int("servers", len(cfg.Servers)),
	}
}

// difference returns how the texts of two configs differ, without the secrets of either config. It compares only the values in the
// texts, not what a reference such as ${file:PATH} stands for. It is empty if these values are equal, or if a text cannot be parsed.
func difference(c configChange) string {
	secrets := sanitize.NewSecrets(slices.Concat(secretsOf(c.from), secretsOf(c.to)), nil)
	strike := func(text string) string { return wiretrace.Strike(secrets, text) }
	return strings.Join(setup.Difference(c.before, c.after, strike), "; ")
}

func (a *auditor) refused(r *request.Event) {
	dropped, ok := a.refusals.Take()
	if !ok {
		return
	}
	of := r.Refused
	attrs := []slog.Attr{
		slog.Int("status", of.Status), slog.String("method", of.Verb), slog.String("path", of.Path), slog.String("remote", of.Remote),
	}
	attrs = audit.Present(attrs, [][2]string{{"principal", r.Principal}, {"display", r.Display}, {"reason", of.Reason}})
	if dropped > 0 {
		attrs = append(attrs, slog.Uint64("left_out_before", dropped))
	}
	_ = a.trail.Write("request_refused", attrs...)
}

// failing reports whether the trail cannot be written at present, and whether mcpx refuses calls because of that.
func (a *auditor) failing() (failing, refuses bool) {
	if a.trail == nil || a.trail.Err() == nil {
		return false, false
	}
	return true, a.required
}

func (a *auditor) close(log *slog.Logger) {
	if left := a.refusals.Left(); left > 0 {
		_ = a.trail.Write("request_refused", slog.Uint64("left_out_before", left))
	}
	if err := a.trail.Close(); err != nil {
		log.Error("the end of the audit trail was not written", "err", err)
	}
}

// AuditReport is what [VerifyAudit] found in an audit trail.
type AuditReport = audit.Report

// ErrAuditKey is the error of [VerifyAudit] if a trail has HMACs but the key to check them is missing.
var ErrAuditKey = audit.ErrNeedsKey

// AuditAnchor returns the path of the anchor file of an audit trail. The anchor notes the first and the last line of the trail, and so
// shows whether lines at the ends were removed. It is in the user's config folder, because whoever can change the trail should not be able
// to change the anchor too.
func AuditAnchor(trail string) (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return audit.AnchorPath(filepath.Join(folder, "mcpx", "audit"), trail)
}

// VerifyAudit checks the audit trail at path, with all its rotated files, against the anchor file. keys has the keys of the HMACs in the
// trail; it is empty for a trail without HMACs.
func VerifyAudit(path string, keys []string, anchor string) (*AuditReport, error) {
	return audit.Verify(path, bytesOf(keys), anchor)
}

// AcceptAudit stores the present state of the audit trail in its anchor, so that VerifyAudit accepts it.
func AcceptAudit(path string, keys []string, anchor string) error {
	return audit.Accept(path, bytesOf(keys), anchor)
}

// AuditQuestion says which calls [AuditUse] adds up, and by what it groups them, such as by tool. AuditUsed has the sums.
type (
	AuditQuestion = audit.Question
	AuditUsed     = audit.Used
)

// AuditUse reads the audit trail at path and adds up its calls. Without keys, lines with HMACs are read unchecked.
func AuditUse(path string, keys []string, anchor string, q AuditQuestion) (*AuditUsed, error) {
	return audit.Use(path, bytesOf(keys), anchor, q)
}

// ForgetAudit replaces a principal in the audit trail at path by a pseudonym. lines is how many lines it changed. Meanwhile, no mcpx may
// have the trail open, because ForgetAudit rewrites the files.
func ForgetAudit(path string, keys []string, anchor, user string) (pseudonym string, lines int, err error) {
	return audit.Forget(path, bytesOf(keys), anchor, user)
}

func bytesOf(keys []string) (all [][]byte) {
	for _, key := range keys {
		all = append(all, []byte(key))
	}
	return all
}
