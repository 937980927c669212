package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Usage says what somebody or something has used, by the ends of calls in a trail.
type Usage struct {
	// Name is the principal, the server, the tool as SERVER.TOOL, or the day as 2027-01-31. Display is the display name of a
	// principal that was used last.
	Name    string `json:"name"`
	Display string `json:"display,omitempty"`
	// Failures are the calls that ended with an error of the tool, the server or mcpx.
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	// Tokens are those of the answers, as clients got them; TokensReceived are those of the servers' results.
	Tokens         int64 `json:"tokens"`
	TokensReceived int64 `json:"tokens_received"`
	// Bytes are those of the answers, BytesReceived those of the servers' results, ArgumentBytes those of the arguments.
	Bytes         int64 `json:"bytes"`
	BytesReceived int64 `json:"bytes_received"`
	ArgumentBytes int64 `json:"argument_bytes"`
}

// Question says what [Use] adds up.
type Question struct {
	// By is "user", "server", "tool" or "day".
	By string
	// User is the principal whose records count; empty means all.
	User string
	// Since is the time of the first records that count.
	Since time.Time
	// Records means that the lines of User are wanted too.
	Records bool
}

// Used is the answer to a Question.
type Used struct {
	Usage []Usage
	// Records are the lines about the user, as they are in the trail.
	Records []json.RawMessage
	// Report says whether the trail is as it was written. Checked is false if it has HMACs and there was no key for them.
	Report  *Report
	Checked bool
}

// record has the members of a line that a report needs.
type record struct {
	Time                                                               time.Time
	Event, Principal, Display, Subject, Method, Server, Tool, Outcome  string
	By                                                                 string
	TokensSent, TokensReceived, BytesSent, BytesReceived, ArgumentSize int64
}

// UnmarshalJSON implements json.Unmarshaler. Lines of older versions may have other members of the same names.
func (r *record) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	for name, into := range map[string]any{
		"time": &r.Time, "event": &r.Event, "principal": &r.Principal, "display": &r.Display, "subject": &r.Subject, "method": &r.Method,
		"server": &r.Server, "tool": &r.Tool, "outcome": &r.Outcome, "by": &r.By, "tokens_sent": &r.TokensSent,
		"tokens_received": &r.TokensReceived, "bytes_sent": &r.BytesSent, "bytes_received": &r.BytesReceived, "argument_bytes": &r.ArgumentSize,
	} {
		if value := members[name]; value != nil {
			_ = json.Unmarshal(value, into)
		}
	}
	return nil
}

// about reports whether a record is about a principal: its own, or one that it caused.
func (r *record) about(user string) bool {
	return r.Principal == user || r.By == user || r.By == "principal "+user
}

// Use reads a trail with all its renamed files, and adds up its calls. It checks the trail like [Verify], but a trail whose key is
// missing is read too.
func Use(path string, keys [][]byte, at string, q Question) (*Used, error) {
	used, sums := &Used{Checked: true}, make(map[string]*Usage)
	reached, unusable := readAnchor(at, keys)
	v := &verifier{chains: chainsOf(keys), keyed: len(keys), unkeyed: len(keys) == 0}
	v.calls, v.runs = make(map[call]bool), make(map[string]bool)
	v.anchor, v.place = reached, Fault{File: path, Line: 1}
	v.each = func(line []byte) {
		var r record
		if json.Unmarshal(line, &r) != nil || r.Time.Before(q.Since) || q.User != "" && !r.about(q.User) {
			return
		}
		if q.Records {
			used.Records = append(used.Records, bytes.Clone(line))
		}
		r.addTo(sums, q.By)
	}
	if err := v.files(path); err != nil {
		return nil, err
	}
	if len(keys) == 0 && v.report.Chained {
		used.Checked, unusable, v.anchor = false, nil, nil // the anchor has an HMAC too
	} else {
		v.ends(reached, unusable, at)
	}
	used.Report = &v.report
	used.Usage = slices.Collect(func(yield func(Usage) bool) {
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			if !yield(*sums[name]) {
				return
			}
		}
	})
	if q.By != "day" {
		slices.SortStableFunc(used.Usage, func(a, b Usage) int { return cmp.Compare(b.Calls, a.Calls) })
	}
	return used, nil
}

// addTo adds the end of a call to the sums.
func (r *record) addTo(sums map[string]*Usage, by string) {
	if r.Event != CallEnded || r.Method != "" {
		return
	}
	name := r.Principal
	switch by {
	case "server":
		name = r.Server
	case "tool":
		name = r.Server + "." + r.Tool
	case "day":
		name = r.Time.UTC().Format(time.DateOnly)
	}
	one := sums[name]
	if one == nil {
		one = &Usage{Name: name}
		sums[name] = one
	}
	if by == "user" {
		one.Display = cmp.Or(r.Display, one.Display)
	}
	one.Calls++
	if !slices.Contains([]string{"RESULT", "CANCELLED", "STILL_RUNNING"}, strings.ToUpper(r.Outcome)) {
		one.Failures++
	}
	one.Tokens += r.TokensSent
	one.TokensReceived += r.TokensReceived
	one.Bytes += r.BytesSent
	one.BytesReceived += r.BytesReceived
	one.ArgumentBytes += r.ArgumentSize
}
