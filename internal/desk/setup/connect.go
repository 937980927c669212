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

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/config"
)

// serverName is the name of the entry that mcpx adds for itself to the files of clients.
const serverName = "mcpx"

// Change is a planned edit of a client's file, or of mcpx's own config.
type Change struct {
	Client  Client
	File    string
	Existed bool // the file exists before the change
	// Before and After are the contents of the file before and after the change.
	Before, After []byte
	// Gone means that the change deletes the file, because mcpx had created it.
	Gone bool
	// Moved are the names of the servers that are removed from the file because mcpx serves them.
	Moved []string
	// Restored are the names of the servers that an earlier change removed and this change adds again.
	Restored []string
	// Exact is for a change that undoes earlier changes. It means that the file gets back, byte for byte, the content that it had
	// before mcpx was connected.
	Exact bool
	// Unrecorded is only for a change that undoes earlier changes. It says why the records of files cannot be read, and is nil if
	// they can be read.
	Unrecorded error

	record record
	moved  []moved // the servers in Moved; Write sets their field Backup
	first  bool    // mcpx has no record of the file, or one that is out of date
	exact  bool    // it will be possible to undo this change byte for byte
}

// Nothing reports whether the change would leave the file as it is.
func (c Change) Nothing() bool {
	return string(c.Before) == string(c.After) && !c.Gone
}

// secretValues match secrets in the lines of a diff: a quoted value after a key that looks like the name of a secret, a value after
// such a key and "=", the token of an Authorization header, and the credentials in a URL.
var secretValues = []*pattern.Lazy{
	pattern.New(`(?i)([\w.-]*(?:token|secret|passw|key|credential|authorization|cookie)[\w.-]*["']?\s*[:=,]\s*["'])(?:[^"'\\\n]|\\.)+`),
	pattern.New(`(?i)([\w.-]*(?:token|secret|passw|key|credential)[\w.-]*=)[^"'\s&]+`),
	pattern.New(`(?i)(bearer |basic )[^"'\s]+`),
	pattern.New(`([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s"'@]*:|https?://|wss?://)[^/?#\s"']+(?:@[^/?#\s"']+)*(@)`), // credentials in a URL
}

// secrets returns the credentials of the servers in the file before and after the change, both as they are and with JSON escapes. The
// longest come first, so that a credential is replaced before a part of it.
func (c Change) secrets() (all []string) {
	for _, data := range [][]byte{c.Before, c.After} {
		for _, f := range readSourceText(c.Client, origin{client: c.Client.ID, file: c.File}, data).Servers {
			for _, secret := range f.Server.Credentials {
				all = append(all, secret, strings.Trim(string(quoted(secret)), `"`))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// Diff returns the change as a unified diff, with values that look like secrets replaced by "…".
func (c Change) Diff(s System) string {
	name := s.Short(c.File)
	text := string(diff.Diff(name, c.Before, name, c.After))
	_, text, _ = strings.Cut(text, "\n") // remove the line "diff FILE FILE"
	text = strings.ReplaceAll(text, "\r", "")
	for _, secret := range c.secrets() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	for _, secret := range secretValues {
		text = secret.ReplaceAllString(text, "${1}…${2}")
	}
	return text
}

// record has what mcpx needs to undo its changes of a client's file, or of its own config. mcpx stores a record for each file
// that it has changed.
type record struct {
	Client string `json:"client"`
	File   string `json:"file"`
	// Backup is the path of a copy of the file from before the first change; empty if there was no file.
	Backup string `json:"backup,omitempty"`
	// Made are the folders that mcpx created for the file, the outermost first.
	Made []string `json:"made,omitempty"`
	// After is the SHA-256 of the file as mcpx wrote it, in hexadecimal. It is empty if the client changed the file between two
	// changes by mcpx: restoring the backup would then undo the client's change too.
	After string `json:"after,omitempty"`
	// Moved are the servers that mcpx removed from the file.
	Moved []moved `json:"moved,omitempty"`
}

// moved is a server that mcpx removed from a client's file.
type moved struct {
	Server string `json:"server"`
	// At has the keys that lead to the server's entry in the file, the outermost first.
	At []string `json:"at,omitempty"`
	// Backup is the path of a backup of the file, from when the file still had the entry.
	Backup string `json:"backup"`
}

// Backups is the folder with the backups and records of the files that mcpx has changed.
type Backups struct{ Dir string }

func (b Backups) index() string { return filepath.Join(b.Dir, "connected.json") }

func (b Backups) records() (all []record, data []byte, existed bool, err error) {
	data, existed, err = Read(b.index())
	if err == nil && existed {
		if err = json.Unmarshal(data, &all); err != nil {
			err = fmt.Errorf("%s, by which changes are undone, is damaged (%w): repair it or move it away", b.index(), err)
		}
	}
	return all, data, existed, err
}

// record returns the record of a file. If the records cannot be read, there is none: then an undo only removes what mcpx has added.
func (b Backups) record(file string) (r record, known bool, err error) {
	all, _, _, err := b.records()
	if i := slices.IndexFunc(all, func(r record) bool { return r.File == file }); i >= 0 {
		return all[i], true, err
	}
	return record{}, false, err
}

// keep stores r as the record of a file, in place of the old one. If r is nil, keep removes the record.
func (b Backups) keep(file string, r *record) error {
	_, err := InTurn(b.index(), func() error { return b.keepNow(file, r) })
	return err
}

func (b Backups) keepNow(file string, r *record) error {
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
	return replace(b.index(), append(data, '\n'), before, existed)
}

// copyOf makes a backup of a file whose content is data, and returns the path of the backup. The name of the backup begins with
// prefix. The function drop removes the backup again, with the folders that were made for it.
func (b Backups) copyOf(prefix, file string, data []byte) (backup string, drop func(), err error) {
	first := prefix + "-" + time.Now().Format("20060102-150405")
	stem := first
	for i := 1; ; i++ {
		name := filepath.Join(b.Dir, stem+"-"+strings.TrimLeft(filepath.Base(file), "."))
		if !exists(name) {
			made, err := write(name, data, nil, false)
			return name, func() {
				_ = os.Remove(name)
				removeEmpty(made)
			}, err
		}
		stem = fmt.Sprintf("%s-%d", first, i)
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Connection says what [Backups.Connect] changes in a client's file.
type Connection struct {
	// Command and Args are the command line that starts mcpx.
	Command string
	Args    []string
	// Variables are the names of the environment variables that mcpx and its config use.
	Variables []string
	// Move has servers of mcpx's config. If an enabled server in Move replaces a server in the client's file (see Doubled), Connect
	// removes the latter from the file, because mcpx serves it. If Move is nil, the client keeps all its servers.
	Move []Found
}

// Connect plans a change of a client's file. The change adds or updates the entry that starts mcpx. It also removes each server
// that a server in connection.Move replaces. Connect does not write the file: call [Backups.Write] for that.
func (b Backups) Connect(c Client, file string, connection Connection, o config.Options) (Change, error) {
	change := Change{Client: c, File: file}
	var err error
	if change.Before, change.Existed, err = Read(file); err != nil {
		return change, err
	}
	change.After = change.Before
	e, servers, err := c.parse(change.Before, file, o)
	if err == nil {
		change.moved, err = e.connect(servers, connection)
	}
	if err != nil {
		return change, unwritten(file, err)
	}
	change.After = e.data()
	for _, one := range change.moved {
		change.Moved = append(change.Moved, one.Server)
	}
	change.first, change.exact = true, true
	connected := slices.ContainsFunc(servers, isSelf) || c.format.entry == nil
	if r, ok, _ := b.record(file); ok && (connected || r.After == hash(change.Before)) {
		// The backup in the record is from before mcpx added its entry, so it remains the backup to restore.
		change.record, change.first, change.exact = r, false, r.After == hash(change.Before)
	}
	change.record.Client, change.record.File = c.ID, file
	return change, nil
}

// unwritten adds "nothing was written" to the error of a change that could not be planned or undone.
func unwritten(file string, err error) error {
	return fmt.Errorf("%s: %w; nothing was written", file, err)
}

// connect adds or updates the entry that starts mcpx, if the format has one. It removes each server that a server in connection.Move
// replaces (see Doubled), and returns the removed ones.
func (e edited) connect(servers []Found, connection Connection) (out []moved, err error) {
	if e.format.entry != nil {
		if err := e.addSelf(servers, connection); err != nil {
			return nil, err
		}
	}
	for _, s := range doubled(servers, connection.Move) {
		if err := e.remove(s.path...); err != nil {
			return nil, err
		}
		out = append(out, moved{Server: s.Name, At: s.path})
	}
	return out, nil
}

// addSelf adds the entry that starts mcpx, under the name mcpx. If the file already has such an entry, under any name, addSelf
// updates it. If there is none, and another server is called mcpx, addSelf returns an error.
func (e edited) addSelf(servers []Found, connection Connection) error {
	name := serverName
	for _, s := range servers {
		if s.Self {
			name = s.Name // an entry that starts mcpx is there already: update this entry
		}
	}
	if slices.ContainsFunc(servers, func(s Found) bool { return s.Name == name && !s.Self }) {
		return fmt.Errorf("another server is called %s there; rename it first", name)
	}
	entry := append(e.format.entry(connection.Command, connection.Args), e.passing(name, connection.Variables)...)
	if e.starts(name, entry) {
		return nil
	}
	return e.start(entry, e.keys(name)...)
}

// passing returns the member of an entry that makes the client pass environment variables to mcpx. It keeps the variables that
// the file's entry called name has there. It is empty if no variable is needed, or if the file has anything but names there.
func (e edited) passing(name string, variables []string) object {
	if e.format.variables == "" {
		return nil
	}
	var names []string
	now, _ := marshal(e.get(append(e.keys(name), e.format.variables)...))
	if json.Unmarshal(now, &names) != nil {
		return nil
	}
	for _, one := range variables {
		if !slices.Contains(passed, one) && !slices.Contains(names, one) {
			names = append(names, one)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return object{{e.format.variables, names}}
}

// Doubled returns the names of those servers that an enabled server in configured can replace. The server in configured must be
// defined in the same way, and must hide at least the tools that the replaced server hides.
func Doubled(servers, configured []Found) []string {
	var names []string
	for _, s := range doubled(servers, configured) {
		names = append(names, s.Name)
	}
	return names
}

func doubled(servers, configured []Found) (all []Found) {
	for _, s := range servers {
		if !s.Self && s.Fault == "" && s.path != nil && slices.ContainsFunc(configured, func(o Found) bool {
			return o.Server.Enabled && slices.Contains(o.replaces(), s.definition())
		}) {
			all = append(all, s)
		}
	}
	return all
}

// parse parses a client's file and reads its servers.
func (c Client) parse(data []byte, file string, o config.Options) (edited, []Found, error) {
	e, err := parse(c.format, data)
	if err != nil {
		return e, nil, err
	}
	return e, e.found(origin{client: c.ID, file: file, project: c.folder, reading: o}, e.format.path), nil
}

// Servers returns the servers in a client's file. mcpx's own entry is one of them if mcpx is connected.
func (c Client) Servers(file string, o config.Options) ([]Found, error) {
	data, _, err := Read(file)
	if err != nil {
		return nil, err
	}
	_, servers, err := c.parse(data, file, o)
	return servers, err
}

// Disconnect plans to undo [Backups.Connect]. If the file has not changed since mcpx wrote it, it will get its old content back.
// There are two exceptions: the file has changed, or mcpx was connected even in the old content. Then Disconnect only removes the
// entry that starts mcpx, and adds the servers again that Connect removed, if the backup can be read. Disconnect writes nothing;
// [Backups.Undo] does.
func (b Backups) Disconnect(c Client, file string, o config.Options) (Change, error) {
	change, backup, known, err := b.forUndo(c, file, Read)
	if err != nil || !change.Existed || c.format.entry == nil && !known {
		return change, err
	}
	_, before, _ := c.parse(backup, file, o)
	if change.Exact = change.Exact && !slices.ContainsFunc(before, isSelf); change.Exact {
		change.After, change.Gone = backup, change.record.Backup == ""
		return change, nil
	}
	e, servers, err := c.parse(change.Before, file, o)
	for _, s := range servers {
		if s.Self && err == nil {
			err = e.remove(s.path...)
		}
	}
	if err == nil && known {
		if change.Restored, err = e.restoreMoved(change.record.Moved); err == nil {
			err = e.dropEmpty(backup)
		}
	}
	if err != nil {
		return change, unwritten(file, err)
	}
	change.After = e.data()
	return change, nil
}

func isSelf(f Found) bool { return f.Self }

// forUndo reads what is needed to undo the changes of a file: the file, its record, and its backup. hasBackup is false if there
// is no record, or if the backup cannot be read; it is true if the record says that there was no file. change.Exact is true if
// hasBackup is true and the file has not changed since mcpx wrote it. read reads the file: [Read] or [config.Read].
func (b Backups) forUndo(
	c Client, file string, read func(string) ([]byte, bool, error),
) (change Change, backup []byte, hasBackup bool, err error) {
	change = Change{Client: c, File: file}
	if change.Before, change.Existed, err = read(file); err != nil {
		return change, nil, false, err
	}
	change.After = change.Before
	if change.record, hasBackup, change.Unrecorded = b.record(file); hasBackup && change.record.Backup != "" {
		var unread error
		backup, hasBackup, unread = Read(change.record.Backup)
		hasBackup = hasBackup && unread == nil
	}
	change.Exact = hasBackup && change.record.After == hash(change.Before)
	return change, backup, hasBackup, nil
}

// Check returns an error if the records cannot be read. Then [Backups.Write] would not write file, which is named in the error.
func (b Backups) Check(file string) error {
	if _, _, _, err := b.records(); err != nil { // the record of this change could not be stored either
		return unwritten(file, err)
	}
	return nil
}

// Write makes a change that [Backups.Connect] or [Backups.Edit] planned. It returns the path of the backup from before mcpx's first
// change of the file. The path is empty if there was no file.
func (b Backups) Write(c Change) (backup string, err error) {
	if err := b.Check(c.File); err != nil {
		return "", err
	}
	drop := func() {}
	if c.Existed && (c.first || !c.exact) {
		if backup, drop, err = b.copyOf(c.Client.ID, c.File, c.Before); err != nil {
			return "", fmt.Errorf("keeping a backup: %w", err)
		}
	}
	made, err := write(c.File, c.After, c.Before, c.Existed)
	if err != nil {
		drop()
		return "", err
	}
	if c.first {
		c.record.Backup, c.record.Made = backup, made
	}
	if backup == "" {
		backup = c.record.Backup // only mcpx has changed the file since this backup, so the backup has the moved servers
	}
	for _, one := range c.moved {
		one.Backup = backup
		c.record.Moved = append(c.record.Moved, one)
	}
	c.record.After = ""
	if c.exact {
		c.record.After = hash(c.After)
	}
	return c.record.Backup, unrecorded(c.File, backup, b.keep(c.File, &c.record))
}

// unrecorded adds to the error of [Backups.keep] that the file was changed all the same, and the path of its backup, if there is one.
func unrecorded(file, backup string, err error) error {
	if err == nil {
		return nil
	}
	if backup != "" {
		backup = "; as it was: " + backup
	}
	return fmt.Errorf("%s was changed, but that could not be recorded: %w%s", file, err, backup)
}

// Undo makes a change that [Backups.Disconnect] or [Backups.Restore] planned. If the change is not exact, Undo first makes
// a backup of the file and returns its path. If the records cannot be read, they stay as they are.
func (b Backups) Undo(c Change) (backup string, err error) {
	drop := func() {}
	if !c.Exact {
		if backup, drop, err = b.copyOf(c.Client.ID, c.File, c.Before); err != nil {
			return "", fmt.Errorf("keeping a backup: %w", err)
		}
	}
	if c.Gone {
		err = c.delete()
	} else {
		_, err = write(c.File, c.After, c.Before, c.Existed)
	}
	if err != nil {
		drop()
		return "", err
	}
	if c.Exact && c.record.Backup != "" {
		_ = os.Remove(c.record.Backup) // the backup is not needed: the file has its content again
	}
	if c.Unrecorded != nil {
		return backup, nil
	}
	return backup, unrecorded(c.File, backup, b.keep(c.File, nil))
}

// delete deletes a file that mcpx created, and the folders that mcpx created for it if they are empty.
func (c Change) delete() error {
	now, _, err := Read(c.File)
	if err == nil && string(now) != string(c.Before) {
		err = fmt.Errorf("%s has changed meanwhile; run the command again", c.File)
	}
	file, linked := atomicfile.Target(c.File)
	if err = errors.Join(err, linked); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	removeEmpty(c.record.Made)
	return nil
}
