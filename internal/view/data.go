package view

import (
	"encoding/json"
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/describe"
	"mcpx/internal/results"
)

// The answers of inspect as data, for structuredContent.

// result returns a tool result with a text. If structured is true, the result also has structuredContent: the value that data
// returns, which has the same content as the text.
func result(text string, structured bool, data func() any) *results.Result {
	r := &results.Result{Content: []json.RawMessage{wire.TextBlock(text)}}
	if structured {
		r.Structured = wire.Encode(data())
	}
	return r
}

func serversData(snap *catalog.Snapshot) any {
	type server struct {
		Name         string `json:"name"`
		State        string `json:"state"`
		Reason       string `json:"reason,omitempty"`
		Tools        int    `json:"tools"`
		Instructions string `json:"instructions,omitempty"`
	}
	data := struct {
		Servers []server `json:"servers"`
	}{Servers: []server{}}
	for i := range snap.Servers {
		s := &snap.Servers[i]
		data.Servers = append(data.Servers, server{s.Name, string(s.State), s.Reason, len(s.Tools), s.Purpose()})
	}
	return data
}

// listing is a list of tools. Server is empty if each tool has its own member "server".
type listing struct {
	Server string            `json:"server,omitempty"`
	Tools  []json.RawMessage `json:"tools"`
}

// extra has the members that mcpx adds to a definition.
type extra struct {
	Server     string `json:"server,omitempty"`
	TypeScript string `json:"typescript"`
	// AlsoOn has the names of other servers that have the same tool.
	AlsoOn []string `json:"also_on,omitempty"`
}

// toolData returns the definition of a tool as the server sent it, always with a description, and with the members of e. If the
// server's definition has members with the same names, they are left out.
func toolData(t *catalog.Tool, e extra) json.RawMessage {
	data := wire.AppendQuoted([]byte(`{"name":`), t.Name)
	data = wire.AppendQuoted(append(data, `,"description":`...), t.Description)
	_ = wire.Members(t.Raw, func(name string, written, value []byte) bool { // the JSON is valid, because it was decoded before
		switch name {
		case "name", "description", "server", "typescript", "also_on":
		default:
			data = slices.Concat(data, []byte{','}, written, []byte{':'}, value)
		}
		return true
	})
	e.TypeScript = describe.Declaration(t)
	return append(append(data, ','), wire.Encode(e)[1:]...)
}

func toolsData(s *catalog.Server, tools []*catalog.Tool) any {
	data := listing{Server: s.Name}
	for _, t := range tools {
		data.Tools = append(data.Tools, toolData(t, extra{}))
	}
	return data
}

// serverData returns the tools of a server. If complete is false, they have only names and descriptions.
func serverData(s *catalog.Server, complete bool) any {
	data := listing{Server: s.Name, Tools: []json.RawMessage{}}
	for i := range s.Tools {
		t := &s.Tools[i]
		if complete {
			data.Tools = append(data.Tools, toolData(t, extra{}))
			continue
		}
		data.Tools = append(data.Tools, wire.Encode(struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		}{t.Name, t.Description}))
	}
	return data
}

func matchesData(found []describe.Match) any {
	var data listing
	for _, m := range found {
		data.Tools = append(data.Tools, toolData(m.Tool, extra{Server: m.Server.Name, AlsoOn: m.Also}))
	}
	return data
}
