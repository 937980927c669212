package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Kind says what a server lists, such as its tools. Its value is the name of the list in the result of a list request.
type Kind string

const (
	Tools             Kind = "tools"
	Resources         Kind = "resources"
	ResourceTemplates Kind = "resourceTemplates"
	Prompts           Kind = "prompts"
	Skills            Kind = "skills" // SEP-2640
)

// Method returns the MCP method that lists the kind.
func (k Kind) Method() string {
	if k == ResourceTemplates {
		return "resources/templates/list"
	}
	return string(k) + "/list"
}

func (k Kind) Changed() string {
	if k == ResourceTemplates {
		k = Resources
	}
	return "notifications/" + string(k) + "/list_changed"
}

// List is one page of a list, or all its pages together.
type List struct {
	// Items are the raw definitions.
	Items []json.RawMessage
	// NextCursor is the raw cursor (a JSON string) of the next page. It is nil for the last page.
	NextCursor json.RawMessage
	// Faults says which definitions were left out and why.
	Faults []string
}

const (
	// maxDefinitions bounds the definitions of a page; no real server has so many. The bound saves memory: when a tiny definition
	// is decoded, it needs a hundred times as many bytes as its JSON.
	maxDefinitions = 50_000
	// maxFaults bounds how many refused definitions are described one by one.
	maxFaults = 100
)

// ReadPage reads the result of a list request without decoding the definitions.
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
	_, _ = definitions.Token() // the opening bracket; json.Unmarshal has checked that the JSON is valid
	for definitions.More() {
		if len(page.Items) == maxDefinitions {
			page.Faults = append(page.Faults, fmt.Sprintf("the items after item %d of the page are left out", maxDefinitions))
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

// DecodeTools decodes each definition separately, so that a bad one does not hide the others. It keeps the schemas as
// raw JSON. faults describes each refused definition; after maxFaults of them, it only says how many more there are.
func DecodeTools(raw []json.RawMessage) (tools []Tool, faults []string) {
	return decodeEach(raw, "tool", DecodeTool)
}

func decodeEach[T any](raw []json.RawMessage, what string, decode func(json.RawMessage) (T, error)) (decoded []T, faults []string) {
	refused := 0
	for i, one := range raw {
		item, err := decode(one)
		if err == nil {
			decoded = append(decoded, item)
		} else if refused++; refused <= maxFaults {
			faults = append(faults, fmt.Sprintf("%s %d: %v", what, i+1, err))
		}
	}
	if refused > maxFaults {
		faults = append(faults, fmt.Sprintf("%d more %ss are refused", refused-maxFaults, what))
	}
	return decoded, faults
}

// DecodeTool reads one tool definition. It refuses a definition only if it is not an object or has no usable name. A
// schema of the wrong type is kept; the code that reads the schema handles it.
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
	if json.Unmarshal(members["execution"], &execution) == nil {
		tool.TaskOnly = execution.TaskSupport == "required"
		tool.RunsAsTask = tool.TaskOnly || execution.TaskSupport == "optional"
	}
	return tool, nil
}

// readApp reads the members about user interfaces (MCP Apps): _meta.ui, and the older _meta["ui/resourceUri"]. If
// there is no valid visibility, AppOnly stays false.
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
	_ = json.Unmarshal(is.UI, &ui) // an invalid ui is ignored
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

// readHints reads each hint separately, so that a hint of the wrong type does not hide the others. If the tool has no title, it
// gets the title in the annotations.
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

// Member returns the name of the member that identifies an item of this kind in requests.
func (k Kind) Member() string {
	switch k {
	case Resources, Skills:
		return "uri"
	case ResourceTemplates:
		return "uriTemplate"
	}
	return "name"
}

// DecodeItems decodes each definition of a list separately. faults describes the definitions that are refused because
// they have no name or URI by which a request could identify them.
func DecodeItems(kind Kind, raw []json.RawMessage) (items []Item, faults []string) {
	return decodeEach(raw, string(kind)+" item", func(one json.RawMessage) (Item, error) {
		var flat bytes.Buffer
		var members map[string]json.RawMessage
		if json.Compact(&flat, one) == nil && json.Unmarshal(flat.Bytes(), &members) == nil {
			if name := text(members[kind.Member()]); name != "" {
				return Item{Name: name, Raw: flat.Bytes()}, nil
			}
		}
		return Item{}, fmt.Errorf("no usable %s", kind.Member())
	})
}

// Unique keeps the first of several tools with the same name, so that no later tool can replace it. faults names the
// tools that are left out.
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

// part returns the slice of whole that has the same bytes as value, or value itself if whole does not contain them. So all parts of
// a definition share the buffer of the definition. If value is empty or null, part returns nil.
func part(whole, value json.RawMessage) json.RawMessage {
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if at := bytes.Index(whole, value); at >= 0 {
		return whole[at : at+len(value) : at+len(value)]
	}
	return value
}
