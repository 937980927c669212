package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of what servers list; its value is the member of the answer that has
// the definitions.
type Kind string

// The kinds of MCP.
const (
	Tools             Kind = "tools"
	Resources         Kind = "resources"
	ResourceTemplates Kind = "resourceTemplates"
	Prompts           Kind = "prompts"
	Skills            Kind = "skills" // SEP-2640
)

// Method is the method that lists what is of the kind.
func (k Kind) Method() string {
	if k == ResourceTemplates {
		return "resources/templates/list"
	}
	return string(k) + "/list"
}

// Changed is the notification that a list of the kind has changed.
func (k Kind) Changed() string {
	if k == ResourceTemplates {
		k = Resources
	}
	return "notifications/" + string(k) + "/list_changed"
}

// List is one page of what a server lists of a kind, or all its pages.
type List struct {
	// Items are the definitions as they were sent.
	Items []json.RawMessage
	// NextCursor is the raw cursor (a JSON string) of the next page, nil at the end.
	NextCursor json.RawMessage
	// Faults says what was left out, and why.
	Faults []string
}

const (
	// maxDefinitions bounds what is read of a page: no server has as many tools,
	// and a page of nothing else would take a hundred times its size.
	maxDefinitions = 50_000
	// maxFaults is how many refused definitions of a page are named.
	maxFaults = 100
)

// ReadPage reads one answer to the method that lists kind. No definition is decoded.
func ReadPage(kind Kind, result json.RawMessage) (List, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(result, &body); err != nil {
		return List{}, fmt.Errorf("reading %s: %w", kind.Method(), err)
	}
	var page List
	if cursor := body["nextCursor"]; isText(cursor) && string(cursor) != `""` {
		page.NextCursor = cursor
	}
	items := body[string(kind)]
	if len(items) == 0 || string(items) == "null" {
		return page, nil
	}
	if items[0] != '[' {
		return List{}, fmt.Errorf("reading %s: %s is not an array", kind.Method(), kind)
	}
	definitions := json.NewDecoder(bytes.NewReader(items))
	_, _ = definitions.Token() // the bracket; the whole was valid above
	for definitions.More() {
		if len(page.Items) == maxDefinitions {
			page.Faults = append(page.Faults, fmt.Sprintf("what follows item %d of the page is left out", maxDefinitions))
			break
		}
		var item json.RawMessage
		if err := definitions.Decode(&item); err != nil {
			return List{}, fmt.Errorf("reading %s: %w", kind.Method(), err)
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// DecodeTools decodes each definition by itself, and keeps its schemas as raw JSON:
// typed decoding of the whole list is what makes one odd schema hide all tools in
// other gateways. faults say of each refused definition which one and why; of very
// many, how many more there are.
func DecodeTools(items []json.RawMessage) (tools []Tool, faults []string) {
	refused := 0
	for n, item := range items {
		tool, err := DecodeTool(item)
		switch {
		case err == nil:
			tools = append(tools, tool)
			continue
		case refused < maxFaults:
			faults = append(faults, fmt.Sprintf("tool %d: %v", n+1, err))
		}
		refused++
	}
	if refused > maxFaults {
		faults = append(faults, fmt.Sprintf("%d more tools are refused", refused-maxFaults))
	}
	return tools, faults
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
	tool.readApp(members["_meta"])
	var execution struct{ TaskSupport string }
	tool.TaskOnly = json.Unmarshal(members["execution"], &execution) == nil && execution.TaskSupport == "required"
	return tool, nil
}

// readApp reads what concerns user interfaces (MCP Apps): _meta.ui, and the older
// _meta["ui/resourceUri"]. A tool that has no visibility, or one of another shape, is for
// the model too.
func (t *Tool) readApp(meta json.RawMessage) {
	if !bytes.Contains(meta, []byte(`"ui`)) {
		return
	}
	var is struct {
		UI    json.RawMessage `json:"ui"`
		Older json.RawMessage `json:"ui/resourceUri"`
	}
	if json.Unmarshal(meta, &is) != nil {
		return
	}
	var ui struct{ Visibility, ResourceURI json.RawMessage }
	_ = json.Unmarshal(is.UI, &ui) // else it says nothing
	var visibility []string
	if json.Unmarshal(ui.Visibility, &visibility) == nil {
		t.AppOnly = visibility != nil && !slices.Contains(visibility, "model")
	}
	for _, uri := range []string{text(ui.ResourceURI), text(is.Older)} {
		if t.App == "" && strings.HasPrefix(uri, appScheme) {
			t.App = uri
		}
	}
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

// Member is the member that requests name an item of the kind by.
func (k Kind) Member() string {
	switch k {
	case Resources, Skills:
		return "uri"
	case ResourceTemplates:
		return "uriTemplate"
	}
	return "name"
}

// DecodeItems reads what a server lists of a kind, each definition by itself. faults say
// which definitions are refused, as no request could name them.
func DecodeItems(kind Kind, raw []json.RawMessage) (items []Item, faults []string) {
	refused := 0
	for n, one := range raw {
		var flat bytes.Buffer
		var members map[string]json.RawMessage
		if json.Compact(&flat, one) == nil && json.Unmarshal(flat.Bytes(), &members) == nil {
			if name := text(members[kind.Member()]); name != "" {
				items = append(items, Item{Name: name, Raw: flat.Bytes()})
				continue
			}
		}
		if refused++; refused <= maxFaults {
			faults = append(faults, fmt.Sprintf("%s: item %d has no usable %s", kind, n+1, kind.Member()))
		}
	}
	return items, faults
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
