package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxText is the maximum length, in bytes, of a string in a record. Longer strings are cut.
	maxText = 1024
	// maxLong is the maximum length, in bytes, of a [Long]. Longer ones are cut.
	maxLong = 8 << 10
	// maxLine is longer than any line of a trail.
	maxLine = 64 << 10
	// macMember is the text before the HMAC, which is the last member of a line.
	macMember = `,"mac":"`
	macLength = 64
)

// appendRecord appends a record as JSON, without its closing brace.
func appendRecord(out []byte, seq uint64, run, event string, attrs []slog.Attr) []byte {
	out = strconv.AppendUint(append(out, `{"seq":`...), seq, 10)
	out = time.Now().UTC().AppendFormat(append(out, `,"time":"`...), time.RFC3339Nano)
	out = append(append(append(out, `","run":"`...), run...), `","event":`...)
	out = appendText(out, event)
	for _, a := range attrs {
		out = append(appendText(append(out, ','), a.Key), ':')
		switch a.Value.Kind() {
		case slog.KindInt64:
			out = strconv.AppendInt(out, a.Value.Int64(), 10)
		case slog.KindUint64:
			out = strconv.AppendUint(out, a.Value.Uint64(), 10)
		case slog.KindBool:
			out = strconv.AppendBool(out, a.Value.Bool())
		case slog.KindDuration: // in seconds
			out = appendSeconds(out, a.Value.Duration())
		default:
			text, most := a.Value.String(), maxText
			if _, long := a.Value.Any().(Long); long {
				most = maxLong
			}
			out = appendCut(out, text, most)
		}
	}
	return out
}

// appendSeconds appends a non-negative duration in seconds, with six decimals.
func appendSeconds(out []byte, d time.Duration) []byte {
	us := max(d, 0).Microseconds()
	out = append(strconv.AppendInt(out, us/1e6, 10), '.')
	for unit := int64(1e5); unit > 0; unit /= 10 {
		out = append(out, byte('0'+us/unit%10))
	}
	return out
}

// Long is a value of an attribute that may be longer than maxText: it is cut only after maxLong bytes. An example is what changed
// in the config.
type Long string

// appendText appends text as a JSON string. It cuts text that is longer than maxText.
func appendText(out []byte, text string) []byte { return appendCut(out, text, maxText) }

func appendCut(out []byte, text string, most int) []byte {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // replaces invalid UTF-8
			return append(out, quoted...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

// seal adds two members to a line: the HMAC of the previous line, and the HMAC of this line, which also covers the HMAC of the
// previous line.
func seal(line []byte, chain hash.Hash, prev string) (sealed []byte, mac string) {
	line = append(append(append(line, `,"prev":"`...), prev...), '"')
	mac = sum(chain, line)
	return append(append(append(line, macMember...), mac...), '"'), mac
}

func unseal(line []byte) (body []byte, mac string, ok bool) {
	at := len(line) - len(macMember) - macLength - len(`"}`)
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(macMember)) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, "", false
	}
	return line[:at], string(line[at+len(macMember):][:macLength]), true
}

// head has those members of a line that are read when a trail is opened or checked.
type head struct {
	Seq     uint64
	Run     string
	Event   string
	Call    uint64
	Records uint64
	Cut     int64
	Prev    string
	MAC     string
}

func readHead(line []byte) (head, bool) {
	var h head
	return h, json.Unmarshal(line, &h) == nil && h.Seq > 0
}

// chainsOf returns one hash for each key, which computes HMACs with this key.
func chainsOf(keys [][]byte) (chains []hash.Hash) {
	for _, key := range keys {
		chains = append(chains, hmac.New(sha256.New, key))
	}
	return chains
}

// fits returns the index of the key that made the HMAC of a line, or -1 if no key fits.
func fits(chains []hash.Hash, line []byte) int {
	body, mac, ok := unseal(line)
	return slices.IndexFunc(chains, func(chain hash.Hash) bool {
		return ok && hmac.Equal([]byte(sum(chain, body)), []byte(mac))
	})
}

// sum returns the HMAC of data in hex.
func sum(chain hash.Hash, data []byte) string {
	chain.Reset()
	chain.Write(data)
	return hex.EncodeToString(chain.Sum(nil))
}

var errNoTrail = errors.New("the file is not an audit trail; move it away")

// lastLine returns the last complete line of a file without its newline, or nil if there is none. whole is the length, in bytes, of
// all complete lines together.
func lastLine(path string) (line []byte, whole int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, err
	}
	tail := make([]byte, min(size, 2*maxLine))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	end := bytes.LastIndexByte(tail, '\n')
	whole = size - int64(len(tail)-end-1)
	if end < 0 {
		if size > int64(len(tail)) {
			return nil, 0, errNoTrail
		}
		return nil, 0, nil
	}
	start := bytes.LastIndexByte(tail[:end], '\n') + 1
	return tail[start:end], whole, nil
}
