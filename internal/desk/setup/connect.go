package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// serverName is what mcpx is called in the files of clients.
const serverName = "mcpx"

// Change is an edit of a client's file that has not been written yet.
type Change struct {
	Client Client
	// File is the client's file; Existed is false where there is none yet.
	File    string
	Existed bool
	// Before and After are its content. Gone: the file goes, since there was none.
	Before, After []byte
	Gone          bool
	// Moved are servers that are taken out, since mcpx serves them.
	Moved []string
	// Restored are servers that had been moved and are put back.
	Restored []string
	// Exact: After is what was there before mcpx was connected, byte for byte.
	Exact bool

	// record is kept of a connected client. first: it is a new one. exact: what it
	// says can be undone byte for byte.
	record       record
	first, exact bool
}

// Nothing reports whether there is nothing to do.
func (c Change) Nothing() bool {
	return string(c.Before) == string(c.After) && !c.Gone
}

// The secrets in the lines that a preview shows: under a name in quotes, behind an
// equals sign, and tokens of the Authorization header wherever they are.
var secretValues = []*pattern.Lazy{
	pattern.New(`(?i)([\w.-]*(?:token|secret|passw|key|credential|authorization|cookie)[\w.-]*["']?\s*[:=,]\s*["'])(?:[^"'\\\n]|\\.)+`),
	pattern.New(`(?i)([\w.-]*(?:token|secret|passw|key|credential)[\w.-]*=)[^"'\s&]+`),
	pattern.New(`(?i)(bearer |basic )[^"'\s]+`),
}

// Diff shows the edit as a unified diff. What looks like a secret is struck out.
func (c Change) Diff(s System) string {
	name := s.Short(c.File)
	text := string(diff.Diff(name, c.Before, name, c.After))
	_, text, _ = strings.Cut(text, "\n") // the command line of a diff
	text = strings.ReplaceAll(text, "\r", "")
	for _, secret := range secretValues {
		text = secret.ReplaceAllString(text, "${1}…")
	}
	return text
}

// record is what is kept of a connected client, so that it can be undone.
type record struct {
	Client string `json:"client"`
	File   string `json:"file"`
	// Backup is the file's content before; empty where there was no file.
	Backup string `json:"backup,omitempty"`
	// Made are the folders that were made for the file, the outermost first.
	Made []string `json:"made,omitempty"`
	// After is the SHA-256 of what was written; empty where the client had changed
	// the file between two edits.
	After string `json:"after,omitempty"`
	// Moved are the servers that were taken out.
	Moved []moved `json:"moved,omitempty"`
}

// moved is a server, and the copy of the file that still has it.
type moved struct {
	Server string `json:"server"`
	Backup string `json:"backup"`
}

// Backups is the folder that keeps what client files were, and the records.
type Backups struct{ Dir string }

func (b Backups) index() string { return filepath.Join(b.Dir, "connected.json") }

func (b Backups) records() (all []record, data []byte, existed bool, err error) {
	data, existed, err = read(b.index())
	if err == nil && existed {
		if err = json.Unmarshal(data, &all); err != nil {
			err = fmt.Errorf("%s: %w", b.index(), err)
		}
	}
	return all, data, existed, err
}

func (b Backups) record(file string) (record, bool) {
	all, _, _, _ := b.records() // without records, entries are removed one by one
	i := slices.IndexFunc(all, func(r record) bool { return r.File == file })
	if i < 0 {
		return record{}, false
	}
	return all[i], true
}

// keep replaces the record of a file; nil forgets it.
func (b Backups) keep(file string, r *record) error {
	all, before, existed, err := b.records()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r record) bool { return r.File == file })
	if r != nil {
		all = append(all, *r)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = write(b.index(), append(data, '\n'), before, existed)
	return err
}

// Keep writes a copy of a file, under a name that begins with what, and says where
// it is.
func (b Backups) Keep(what, file string, data []byte) (string, error) {
	first := what + "-" + time.Now().Format("20060102-150405")
	stem := first
	for i := 1; ; i++ {
		name := filepath.Join(b.Dir, stem+"-"+strings.TrimLeft(filepath.Base(file), "."))
		if !exists(name) {
			_, err := write(name, data, nil, false)
			return name, err
		}
		stem = fmt.Sprintf("%s-%d", first, i)
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Connection is what [Backups.Connect] changes in a client's file.
type Connection struct {
	// Command and Args start mcpx.
	Command string
	Args    []string
	// Move are the servers of mcpx's config: those that the client has too are taken
	// out of its file. With nil the client keeps all that it has.
	Move []Found
}

// Connect plans the entry of mcpx in a client's file.
func (b Backups) Connect(c Client, file string, to Connection, o config.Options) (Change, error) {
	change := Change{Client: c, File: file}
	var err error
	if change.Before, change.Existed, err = read(file); err != nil {
		return change, err
	}
	change.After = change.Before
	fail := func(err error) (Change, error) { return change, fmt.Errorf("%s: %w; nothing was written", file, err) }
	e, servers, err := c.parse(change.Before, file, o)
	if err != nil {
		return fail(err)
	}
	name := serverName
	for _, s := range servers {
		if s.Self {
			name = s.Name // an entry that somebody wrote by hand is made right
		}
	}
	for _, s := range servers {
		if s.Name == name && !s.Self {
			return fail(fmt.Errorf("another server is called %s there; rename it first", name))
		}
	}
	entry := c.format.entry(to.Command, to.Args)
	if !e.sameEntry(name, entry) {
		if e, err = e.set(name, entry); err != nil {
			return fail(err)
		}
	}
	for _, s := range Doubled(servers, to.Move) {
		if e, err = e.remove(s); err != nil {
			return fail(err)
		}
		change.Moved = append(change.Moved, s)
	}
	change.After = e.data()
	change.first, change.exact = true, true
	connected := slices.ContainsFunc(servers, func(f Found) bool { return f.Self })
	if r, ok := b.record(file); ok && (connected || r.After == hash(change.Before)) {
		// Its backup is from before mcpx was there.
		change.record, change.first, change.exact = r, false, r.After == hash(change.Before)
	}
	change.record.Client, change.record.File = c.ID, file
	return change, nil
}

// Doubled are the servers of a client that mcpx serves too, so that the client
// has them twice.
func Doubled(servers, own []Found) []string {
	var names []string
	for _, s := range servers {
		if !s.Self && s.Fault == "" && slices.ContainsFunc(own, func(o Found) bool {
			return o.definition() == s.definition() && o.Server.Enabled
		}) {
			names = append(names, s.Name)
		}
	}
	return names
}

// parse reads the text of a client's file, and the servers in it.
func (c Client) parse(data []byte, file string, o config.Options) (e edited, servers []Found, err error) {
	if e, err = parse(c.format, data); err == nil {
		servers, err = e.servers(origin{client: c.ID, file: file, reading: o})
	}
	return e, servers, err
}

// Servers are those at the place where the client's servers are.
func (c Client) Servers(file string, o config.Options) ([]Found, error) {
	data, _, err := read(file)
	if err != nil {
		return nil, err
	}
	e, err := parse(c.format, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return e.servers(origin{client: c.ID, file: file, reading: o})
}

// Disconnect plans the way back: to the very bytes from before where the file is
// still as mcpx wrote it, else without mcpx and with the servers that were moved.
func (b Backups) Disconnect(c Client, file string, o config.Options) (Change, error) {
	change, backup, known, err := b.back(c, file)
	if err != nil || !change.Existed {
		return change, err
	}
	if change.Exact = change.Exact && !c.hasSelf(backup, file, o); change.Exact {
		change.After, change.Gone = backup, change.record.Backup == ""
		return change, nil
	}
	fail := func(err error) (Change, error) { return change, fmt.Errorf("%s: %w; nothing was written", file, err) }
	e, servers, err := c.parse(change.Before, file, o)
	if err != nil {
		return fail(err)
	}
	for _, s := range servers {
		if s.Self {
			if e, err = e.remove(s.Name); err != nil {
				return fail(err)
			}
		}
	}
	if known {
		now := e
		if e, err = e.undo(change.record, backup); err != nil {
			return fail(err)
		}
		for _, m := range change.record.Moved {
			if !now.has(m.Server) && e.has(m.Server) {
				change.Restored = append(change.Restored, m.Server)
			}
		}
	}
	change.After = e.data()
	return change, nil
}

// back begins the way back of a file: with its record, and with its content before, where known.
// Exact says that the file is still as mcpx wrote it.
func (b Backups) back(c Client, file string) (change Change, backup []byte, known bool, err error) {
	change = Change{Client: c, File: file}
	if change.Before, change.Existed, err = read(file); err != nil {
		return change, nil, false, err
	}
	change.After = change.Before
	if change.record, known = b.record(file); known && change.record.Backup != "" {
		var unread error
		backup, known, unread = read(change.record.Backup)
		known = known && unread == nil
	}
	change.Exact = known && change.record.After == hash(change.Before)
	return change, backup, known, nil
}

// hasSelf reports whether mcpx is in the content of a client's file.
func (c Client) hasSelf(data []byte, file string, o config.Options) bool {
	_, servers, _ := c.parse(data, file, o)
	return slices.ContainsFunc(servers, func(f Found) bool { return f.Self })
}

// Write writes the change of [Backups.Connect]; backup is where the old file is
// kept, empty where there was none.
func (b Backups) Write(c Change) (backup string, err error) {
	if c.Existed && (c.first || !c.exact) {
		if backup, err = b.Keep(c.Client.ID, c.File, c.Before); err != nil {
			return "", fmt.Errorf("keeping a backup: %w", err)
		}
	}
	made, err := write(c.File, c.After, c.Before, c.Existed)
	if err != nil {
		if backup != "" {
			_ = os.Remove(backup)
		}
		return "", err
	}
	if c.first {
		c.record.Backup, c.record.Made = backup, made
	}
	if backup == "" {
		backup = c.record.Backup // has them too: nobody else has written the file since
	}
	for _, name := range c.Moved {
		c.record.Moved = append(c.record.Moved, moved{name, backup})
	}
	c.record.After = ""
	if c.exact {
		c.record.After = hash(c.After)
	}
	return c.record.Backup, b.keep(c.File, &c.record)
}

// Undo writes the change of [Backups.Disconnect]. Where that is not the exact
// content from before, backup is where the file is kept as it was found.
func (b Backups) Undo(c Change) (backup string, err error) {
	if !c.Exact {
		if backup, err = b.Keep(c.Client.ID, c.File, c.Before); err != nil {
			return "", fmt.Errorf("keeping a backup: %w", err)
		}
	}
	if c.Gone {
		err = c.delete()
	} else {
		_, err = write(c.File, c.After, c.Before, c.Existed)
	}
	if err != nil {
		return "", err
	}
	if c.Exact && c.record.Backup != "" {
		_ = os.Remove(c.record.Backup) // the file is as it says
	}
	return backup, b.keep(c.File, nil)
}

// delete removes a file that mcpx made, and its folders that are empty.
func (c Change) delete() error {
	now, _, err := read(c.File)
	if err == nil && string(now) != string(c.Before) {
		err = fmt.Errorf("%s has changed meanwhile; run the command again", c.File)
	}
	file, linked := resolve(c.File)
	if err = errors.Join(err, linked); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	for _, folder := range slices.Backward(c.record.Made) {
		if os.Remove(folder) != nil {
			break // not empty: others use it
		}
	}
	return nil
}
