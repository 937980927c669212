package results

import (
	"encoding/json"
)

// Kept is what a handle refers to: a result or a running call. Other processes that share the store can read the result, but only
// this process has the call.
type Kept struct {
	result *result // nil if this is a call
	held   any     // the call; nil if this is a result, and in other processes
	origin Origin  // the tool of the call; zero if this is a result
}

// encoded is a result as JSON for other processes. Its members are strings because a part of a JSON value may not be valid
// JSON.
type encoded struct {
	Principal string   `json:"principal,omitempty"`
	Server    string   `json:"server,omitempty"`
	Tool      string   `json:"tool,omitempty"`
	Value     string   `json:"value,omitempty"`
	Verbatim  bool     `json:"verbatim,omitempty"`
	Unasked   bool     `json:"unasked,omitempty"`
	File      bool     `json:"file,omitempty"`
	Units     []string `json:"units,omitempty"`
	Kind      unitKind `json:"kind,omitempty"`
	Items     []string `json:"items,omitempty"`
	Path      string   `json:"path,omitempty"`
	Inner     int      `json:"inner,omitempty"`
	Head      string   `json:"head,omitempty"`
	Tail      string   `json:"tail,omitempty"`
	Open      string   `json:"open,omitempty"`
	Close     string   `json:"close,omitempty"`
	Quoted    bool     `json:"quoted,omitempty"`
	AsLines   bool     `json:"as_lines,omitempty"`
	Before    string   `json:"before,omitempty"`
	After     string   `json:"after,omitempty"`
}

// MarshalJSON implements [json.Marshaler]. A call is encoded as null.
func (k *Kept) MarshalJSON() ([]byte, error) {
	h := k.result
	if h == nil {
		return []byte("null"), nil
	}
	e := encoded{
		Principal: h.principal, Server: h.origin.Server, Tool: h.origin.Tool,
		Value: string(h.value), Verbatim: h.verbatim, Unasked: h.unasked, File: h.file,
		Units: h.units, Kind: h.kind, Path: h.path, Inner: h.inner,
		Head: h.head, Tail: h.tail, Open: h.open, Close: h.close, Quoted: h.quoted, AsLines: h.asLines,
		Before: h.before, After: h.after,
	}
	for _, item := range h.items {
		e.Items = append(e.Items, string(item))
	}
	return json.Marshal(e)
}

// UnmarshalJSON reads what MarshalJSON has written. A null becomes a Kept without a result and without a call.
func (k *Kept) UnmarshalJSON(data []byte) error {
	*k = Kept{}
	if string(data) == "null" {
		return nil
	}
	var e encoded
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	h := &result{
		principal: e.Principal, origin: Origin{e.Server, e.Tool}, verbatim: e.Verbatim, unasked: e.Unasked, file: e.File,
		units: e.Units, kind: e.Kind,
	}
	h.list = list{
		path: e.Path, inner: e.Inner, head: e.Head, tail: e.Tail, open: e.Open, close: e.Close, quoted: e.Quoted, asLines: e.AsLines,
		before: e.Before, after: e.After,
	}
	if e.Value != "" {
		h.value = json.RawMessage(e.Value)
	}
	for _, item := range e.Items {
		h.items = append(h.items, json.RawMessage(item))
	}
	k.result = h
	return nil
}
