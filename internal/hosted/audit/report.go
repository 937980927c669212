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

// Usage has the sums for one principal, server, tool or day. They are made from those records of a trail that say how a tool call
// ended (CallEnded).
type Usage struct {
	// Name is the principal, the server, the tool as SERVER.TOOL, or the day as 2027-01-31. Display is the newest display name of a
	// principal.
	Name    string `json:"name"`
	Display string `json:"display,omitempty"`
	// Failures are the calls that ended with an error of the tool, the server or mcpx.
	Calls    int64 `json:"calls"`
	Failures int64 `json:"failures"`
	// Tokens is the size of the answers that clients got, in tokens. TokensReceived is the size of the results that servers sent.
	Tokens         int64 `json:"tokens"`
	TokensReceived int64 `json:"tokens_received"`
	// Bytes is the size of the answers that clients got, in bytes. BytesReceived is the size of the results that servers sent.
	// ArgumentBytes is the size of the arguments.
	Bytes         int64 `json:"bytes"`
	BytesReceived int64 `json:"bytes_received"`
	ArgumentBytes int64 `json:"argument_bytes"`
}

// Question says which records of a trail [Use] selects, and by what it groups them for the sums.
type Question struct {
	// By is "user", "server", "tool" or "day": there is one sum for each user, server, tool or day.
	By string
	// User selects the records about this principal; empty means the records about all principals.
	User string
	// Since selects the records from this time on; zero means all records of the trail.
	Since time.Time
	// Records means that [Use] returns not only sums, but also the selected records.
	Records bool
}

// Used is the result of [Use], the answer to a [Question].
type Used struct {
	Usage []Usage // the sums
	// Records are the selected records, each as its line in the trail; nil if Question.Records is false.
	Records []json.RawMessage
	// Report has the faults of the trail. Checked is false if the lines have HMACs that were not checked, because there was no key.
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

// UnmarshalJSON implements json.Unmarshaler. It skips members of an unexpected type, which lines of older versions may have.
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

// about reports whether a record is about a principal: what the principal did, or a change of the config that the principal caused
// (By).
func (r *record) about(user string) bool {
	return r.Principal == user || r.By == user || r.By == "principal "+user
}

// Use reads a trail with all its renamed files, and adds up the tool calls that q selects. It checks the trail as [Verify] does.
// But without keys it also reads a trail with HMACs, and Used.Checked is then false.
func Use(path string, keys [][]byte, anchorPath string, q Question) (*Used, error) {
	if err := betweenStates(path); err != nil {
		return nil, err
	}
	used, sums := &Used{Checked: true}, make(map[string]*Usage)
	reached, unusable := readAnchor(anchorPath, keys)
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
		used.Checked, unusable, v.anchor = false, nil, nil // without a key, the HMAC of the anchor cannot be checked either
	} else {
		v.ends(reached, unusable, anchorPath)
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

// addTo adds a record to the sums if it is the end of a tool call.
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
