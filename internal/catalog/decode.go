package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Page is one decoded page of a tools/list answer.
type Page struct {
	Tools []Tool
	// NextCursor is the raw cursor (a JSON string) of the next page, nil at the end.
	NextCursor json.RawMessage
	// Faults says of each refused definition which one and why; of very many, how
	// many more there are. A refused one costs nothing but itself.
	Faults []string
}

const (
	// maxDefinitions bounds what is read of a page: no server has as many tools,
	// and a page of nothing else would take a hundred times its size.
	maxDefinitions = 50_000
	// maxFaults is how many refused definitions of a page are named.
	maxFaults = 100
)

// DecodePage reads one tools/list result. Each definition is decoded by itself,
// and its schemas are kept as raw JSON: typed decoding of the whole list is what
// makes one odd schema hide all tools in other gateways.
func DecodePage(result json.RawMessage) (Page, error) {
	var body struct {
		Tools      json.RawMessage `json:"tools"`
		NextCursor json.RawMessage `json:"nextCursor"`
	}
	if err := json.Unmarshal(result, &body); err != nil {
		return Page{}, fmt.Errorf("reading tools/list: %w", err)
	}
	var page Page
	if isText(body.NextCursor) && string(body.NextCursor) != `""` {
		page.NextCursor = body.NextCursor
	}
	if len(body.Tools) == 0 || string(body.Tools) == "null" {
		return page, nil
	}
	if body.Tools[0] != '[' {
		return Page{}, fmt.Errorf("reading tools/list: tools is not an array")
	}
	definitions, refused := json.NewDecoder(bytes.NewReader(body.Tools)), 0
	_, _ = definitions.Token() // the bracket; the whole was valid above
	for n := 1; definitions.More(); n++ {
		if n > maxDefinitions {
			page.Faults = append(page.Faults, fmt.Sprintf("what follows tool %d of the page is left out", maxDefinitions))
			break
		}
		var raw json.RawMessage
		if err := definitions.Decode(&raw); err != nil {
			return Page{}, fmt.Errorf("reading tools/list: %w", err)
		}
		tool, err := DecodeTool(raw)
		switch {
		case err == nil:
			page.Tools = append(page.Tools, tool)
			continue
		case refused < maxFaults:
			page.Faults = append(page.Faults, fmt.Sprintf("tool %d: %v", n, err))
		}
		refused++
	}
	if refused > maxFaults {
		page.Faults = append(page.Faults, fmt.Sprintf("%d more tools are refused", refused-maxFaults))
	}
	return page, nil
}

// DecodeTool reads one tool definition. Only a definition without a usable name
// is refused; a schema of the wrong kind is kept as it is, for those who read it
// to cope with.
func DecodeTool(raw json.RawMessage) (Tool, error) {
	var flat bytes.Buffer
	flat.Grow(len(raw))
	if json.Compact(&flat, raw) != nil {
		return Tool{}, fmt.Errorf("the definition is not valid JSON")
	}
	tool := Tool{Raw: flat.Bytes()}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(tool.Raw, &members); err != nil || members == nil {
		return Tool{}, fmt.Errorf("the definition is not an object")
	}
	if tool.Name = text(members["name"]); tool.Name == "" {
		return Tool{}, fmt.Errorf("the name is missing or not a string")
	}
	tool.Title = text(members["title"])
	tool.Description = text(members["description"])
	tool.InputSchema = part(tool.Raw, members["inputSchema"])
	tool.OutputSchema = part(tool.Raw, members["outputSchema"])
	if hints := part(tool.Raw, members["annotations"]); hints != nil && hints[0] == '{' {
		tool.Annotations = hints
		tool.readHints()
	}
	return tool, nil
}

// readHints reads each hint by itself, so that one of the wrong type does not
// hide the others.
func (t *Tool) readHints() {
	var members map[string]json.RawMessage
	if json.Unmarshal(t.Annotations, &members) != nil {
		return
	}
	flag := func(name string) *bool {
		yes := string(members[name]) == "true"
		if !yes && string(members[name]) != "false" {
			return nil
		}
		return &yes
	}
	t.Hints = Hints{
		ReadOnly: flag("readOnlyHint"), Destructive: flag("destructiveHint"),
		Idempotent: flag("idempotentHint"), OpenWorld: flag("openWorldHint"),
	}
	if t.Title == "" {
		t.Title = text(members["title"])
	}
}

// Unique keeps the first tool of each name. A later one of the same name is
// refused and said so: to let it win would let a server shadow its own tools.
func Unique(tools []Tool) (kept []Tool, faults []string) {
	seen := make(map[string]bool, len(tools))
	for _, tool := range tools {
		if seen[tool.Name] {
			faults = append(faults, fmt.Sprintf("tool %q: the name occurs twice; only the first is kept", tool.Name))
			continue
		}
		seen[tool.Name] = true
		kept = append(kept, tool)
	}
	return kept, faults
}

func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

func text(raw json.RawMessage) string {
	var s string
	if !isText(raw) || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// part is value as it lies in whole, which has it: what is kept of a definition
// are parts of one copy. nil for null and for nothing.
func part(whole, value json.RawMessage) json.RawMessage {
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if at := bytes.Index(whole, value); at >= 0 {
		return whole[at : at+len(value) : at+len(value)]
	}
	return value
}
