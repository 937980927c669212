package audit

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/pattern"
)

const (
	// forgotten is the event of the line that [Forget] adds.
	forgotten = "forgotten"
	// rewritten is a suffix. [Forget] writes the new content of each file of the trail to a file with the same name and this
	// suffix. In the end the new files replace the old ones.
	rewritten = ".forgetting"
	// complete is the suffix of a marker file. It exists from the moment when all new files are whole until all of them have
	// replaced the old files.
	complete = ".forgetting.complete"
)

var errForgetting = errors.New("mcpx audit forget runs, or was interrupted: then run it again")

// betweenStates returns an error if [Forget] is just replacing the files of a trail, or was interrupted while it did so. Then some
// files may be new and others old.
func betweenStates(path string) error {
	if _, missing := os.Stat(path + complete); missing == nil {
		return errForgetting
	}
	return nil
}

// Forget replaces the name of a principal by a pseudonym in all lines of a trail. It also removes the principal's display name,
// subject and addresses. In free text, such as the reason why a login ended, it replaces only e-mail addresses: the name, if it
// contains an @, and the part of the name before its last @, if this part contains an @. All lines from the first changed one on
// get new HMACs, so [Verify] accepts the trail.
//
// Forget adds a last line. It says how many lines were changed, and which HMAC the last line had before. So an operator who has a
// copy of this HMAC ([Report]) can still find it in the trail. If no line names the principal, Forget changes nothing, and
// pseudonym is empty. Forget refuses a trail that a process has open, and a trail with faults, because new HMACs would hide the
// faults. If Forget was interrupted, calling it again completes it.
func Forget(path string, keys [][]byte, anchorPath, user string) (pseudonym string, lines int, err error) {
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); err != nil {
		return "", 0, fmt.Errorf("locking the audit file: %w", err)
	} else if !ok {
		return "", 0, &InUseError{path}
	}
	defer lock.Close()
	if err := finishForgetting(path, keys, anchorPath); err != nil {
		return "", 0, err
	}
	r, err := Verify(path, keys, anchorPath)
	if err != nil {
		return "", 0, err
	}
	if len(r.Faults) > 0 {
		return "", 0, fmt.Errorf("the trail is not as it was written, which new HMACs would hide: %v (mcpx audit verify says more)", r.Faults[0])
	}
	f := &forgetting{user: user, pseudonym: "forgotten-" + strings.ToLower(rand.Text()[:10]), chains: chainsOf(keys)}
	if at := strings.LastIndex(user, "@"); at > 0 && strings.Contains(user[:at], "@") {
		f.address = user[:at]
	}
	for i, file := range r.Files {
		if err := f.file(file, i == len(r.Files)-1, r); err != nil {
			return "", 0, err
		}
	}
	if f.lines == 0 {
		for _, file := range r.Files {
			_ = os.Remove(file + rewritten)
		}
		return "", 0, nil
	}
	if err := atomicfile.Write(path+complete, []byte("all files are whole\n"), 0o600); err != nil {
		return "", 0, err
	}
	return f.pseudonym, f.lines, finishForgetting(path, keys, anchorPath)
}

// finishForgetting completes an interrupted [Forget]. If all new files are whole, it replaces the files of the trail by them.
// Otherwise it removes the new files.
func finishForgetting(path string, keys [][]byte, anchorPath string) error {
	files, err := parts(path)
	if err != nil {
		return err
	}
	_, incomplete := os.Stat(path + complete)
	for _, one := range append(files, part{path: path}) {
		if incomplete != nil {
			err = os.Remove(one.path + rewritten)
		} else {
			err = os.Rename(one.path+rewritten, one.path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if incomplete != nil {
		return nil
	}
	syncFolder(path)
	if anchorPath != "" {
		if err := accept(path, keys, anchorPath); err != nil {
			return err
		}
	}
	return os.Remove(path + complete)
}

type forgetting struct {
	user, pseudonym string
	// address is the part of user before the last @, if this part is an e-mail address; otherwise it is empty. It is then the value
	// of the claim that names the user.
	address string
	chains  []hash.Hash // the first one makes the HMACs
	lines   int         // number of changed lines
	mac     string      // HMAC of the last new line
	seq     uint64
}

// file writes the new content of one file of the trail to a file beside it. The last file gets one more line, which says what
// Forget has done.
func (f *forgetting) file(path string, isLast bool, r *Report) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		h, _ := readHead(line)
		body, changed := f.line(line)
		if f.seq = h.Seq; changed {
			f.lines++
		}
		if f.lines == 0 {
			f.mac = h.MAC
			out.Write(line)
		} else {
			out.Write(f.sealed(body))
		}
		out.WriteByte('\n')
	}
	if isLast && f.lines > 0 {
		end := appendRecord(nil, f.seq+1, rand.Text()[:13], forgotten, []slog.Attr{
			slog.String("pseudonym", f.pseudonym), slog.Int("lines", f.lines), slog.Uint64("was_last", r.Last), slog.String("was_mac", r.MAC),
		})
		out.Write(append(f.sealed(end), '\n'))
	}
	return writeNew(path+rewritten, out.Bytes())
}

// writeNew writes a new file directly at path, without a temporary file. If mcpx crashes meanwhile, the next call of [Forget]
// removes the incomplete file at path. It would not find a temporary file, which would contain names of principals.
func writeNew(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// sealed adds to a new line its HMACs, if there are keys, and the closing brace.
func (f *forgetting) sealed(body []byte) []byte {
	if len(f.chains) > 0 {
		body, f.mac = seal(body, f.chains[0], f.mac)
	}
	return append(body, '}')
}

// line returns a line of the new trail, without HMACs and closing brace: the old line without what identifies the user. changed
// reports whether the old line contained such text.
func (f *forgetting) line(line []byte) (body []byte, changed bool) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	_, _ = decoder.Token() // the opening brace
	body = append(body, '{')
	var r record
	_ = json.Unmarshal(line, &r)
	own := r.about(f.user)
	for decoder.More() {
		key, _ := decoder.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		switch {
		case name == "prev" || name == "mac":
			continue
		case own && r.Principal == f.user && slices.Contains([]string{"display", "subject", "remote"}, name):
			changed = true
			continue
		}
		if text := f.without(name, value); text != nil {
			value, changed = text, true
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(append(body, '"'), name...), `":`...)
		body = append(body, value...)
	}
	return body, changed
}

// without returns the value of the member name with the user's name replaced, or nil if the user's name is not in it.
func (f *forgetting) without(name string, value json.RawMessage) json.RawMessage {
	var text string
	if !slices.Contains([]string{"principal", "by", "changes", "path", "reason", "subject"}, name) || json.Unmarshal(value, &text) != nil {
		return nil
	}
	after := text
	switch name {
	case "principal":
		if text == f.user {
			after = f.pseudonym
		}
	case "by":
		if text == f.user || text == "principal "+f.user {
			after = strings.TrimSuffix(text, f.user) + f.pseudonym
		}
	default: // free text: only addresses are replaced, because a short name such as ci may be part of a word
		for _, one := range []string{f.user, f.address} {
			if strings.Contains(one, "@") {
				after = replaceName(after, one, f.pseudonym)
			}
		}
	}
	if after == text {
		return nil
	}
	return appendCut(nil, after, maxLong)
}

// replaceName replaces a name in a text. It ignores case, because administrators write addresses in upper and lower case. It does
// not replace a part of a longer name. The longer name belongs to another user, and the rest of it could reveal the part that was
// replaced.
func replaceName(text, name, with string) string {
	var out strings.Builder
	last := 0
	for _, at := range regexp.MustCompile("(?i)"+regexp.QuoteMeta(name)).FindAllStringIndex(text, -1) {
		if longerBefore.MatchString(text[:at[0]]) || longerAfter.MatchString(text[at[1]:]) {
			continue
		}
		out.WriteString(text[last:at[0]] + with)
		last = at[1]
	}
	return out.String() + text[last:]
}

var (
	longerBefore = pattern.New(`[\pL\pN._%+-]$`)
	longerAfter  = pattern.New(`^[.:/]?[\pL\pN_-]`)
)
