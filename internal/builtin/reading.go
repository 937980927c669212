package builtin

import (
	"context"
	"encoding/json"
	"errors"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/resources"
)

// These are the tools of the built-in server for clients that know neither resources nor prompts.
const (
	listTool   = "list_resources"
	readTool   = "read_resource"
	promptTool = "get_prompt"
)

// readingTools are the tools of the built-in server that list and read resources and prompts. Each has a name, a description and a
// schema.
var readingTools = [][3]string{
	{listTool, "List resources, templates and prompts.", `{"type":"object","properties":{"server_name":{"type":"string"}}}`},
	{readTool, "Read a resource by its URI.", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`},
	{promptTool, "Get the messages of a prompt.", `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"]}`},
}

// reading runs one of the readingTools. It returns the result in the form in which a server would send it. If the func read is
// not nil, it is called with the name of each server from which the result contains something.
func (s *Server) reading(
	ctx context.Context, q *request.Request, read func(server string), tool string, arguments json.RawMessage,
) (json.RawMessage, error) {
	if tool == listTool {
		return s.list(ctx, q, read, wire.MemberText(arguments, "server_name"))
	}
	method, blocks := "resources/read", resourceBlocks
	if tool == promptTool {
		method, blocks = "prompts/get", promptBlocks
	}
	from := q.From
	from.Event = s.Journal.Begin(method, q.Client) // q.Event is for the call of the built-in tool
	raw, err := s.Resources(q).Send(ctx, &request.Request{From: from, Method: method, Params: arguments})
	from.Event.Ended(ctx, err)
	s.Journal.End(from.Event)
	if err != nil {
		return nil, readingError(err)
	}
	if read != nil {
		read(from.Event.Server)
	}
	if wire.MemberText(raw, "resultType") != "input_required" {
		raw = toolResult(blocks(raw))
	}
	return raw, nil
}

// readingError turns an error about an unknown item into an error about invalid arguments, since the arguments name the item.
func readingError(err error) error {
	if uri, ok := errors.AsType[*catalog.URIError](err); ok {
		return arguments.Invalid("/uri: " + uri.Error())
	}
	if prompt, ok := errors.AsType[*resources.PromptError](err); ok {
		text := "/name: " + prompt.Error()
		if prompt.Near == "" {
			text += "; " + listTool + " has their names"
		}
		return arguments.Invalid(text)
	}
	if params, ok := errors.AsType[*resources.ParamsError](err); ok {
		return arguments.Invalid("/: " + params.Error())
	}
	return err
}

// list lists the resources and prompts of one server or, if server is empty, of all servers.
func (s *Server) list(ctx context.Context, q *request.Request, read func(server string), server string) (json.RawMessage, error) {
	servers := s.Resources(q)
	if _, known := servers.Catalogue().Server(server); server != "" && !known {
		return nil, s.NoServer(server, servers.Catalogue())
	}
	var all json.RawMessage
	from := make(map[string]bool)
	for _, kind := range catalog.ItemKinds {
		var items []json.RawMessage
		page := resources.Page{}
		for more := servers.Shows(kind); more; more = page.Next != "" {
			page, _ = servers.List(ctx, kind, page.Next)
			for _, item := range page.Items {
				of := wire.MemberText(wire.Member(wire.Member(item, "_meta"), request.Origin), "server")
				if server != "" && server != of {
					continue
				}
				if brief := briefly(kind, item); brief != nil {
					items, from[of] = append(items, brief), true
				}
			}
		}
		if len(items) > 0 {
			all = wire.WithMember(all, string(kind), wire.Encode(items))
		}
	}
	if read != nil {
		for server := range from {
			read(server)
		}
	}
	text := string(all)
	if all == nil {
		text = "There are no resources and no prompts."
	}
	return toolResult([]json.RawMessage{wire.TextBlock(text)}), nil
}

// briefly reduces an item to what a model needs: what it is called and about, and how to read it. It returns nil if nothing is
// left.
func briefly(kind catalog.Kind, item json.RawMessage) (brief json.RawMessage) {
	members := make(map[string]json.RawMessage)
	_ = wire.Fields(item, func(key string, value []byte) bool {
		members[key] = value
		return true
	})
	keys := []string{kind.Member(), "name", "description", "mimeType"}
	if title := members["title"]; len(title) > 0 {
		members["name"] = title // the title is more descriptive than the name
	}
	if kind == catalog.Prompts {
		members["name"] = wire.Encode(wire.MemberText(item, "name"))
		members["arguments"] = argumentNames(members["arguments"])
		keys = []string{"name", "description", "arguments"}
	}
	for _, key := range keys {
		if value := members[key]; len(value) > 0 && string(value) != "null" {
			brief = wire.WithMember(brief, key, value)
		}
	}
	return brief
}

// argumentNames lists the names of a prompt's arguments; the names of optional arguments end with a question mark.
func argumentNames(list json.RawMessage) json.RawMessage {
	var all []struct {
		Name     string
		Required bool
	}
	if json.Unmarshal(list, &all) != nil || len(all) == 0 {
		return nil
	}
	names := make([]string, len(all))
	for i, one := range all {
		if names[i] = one.Name; !one.Required {
			names[i] += "?"
		}
	}
	return wire.Encode(names)
}

// toolResult makes a tool result of content blocks.
func toolResult(blocks []json.RawMessage) json.RawMessage {
	return wire.WithMember(nil, "content", wire.Encode(blocks))
}

// resourceBlocks turns the contents of a resource into content blocks. A single text becomes a text block. Anything else
// becomes embedded resources, which carry their URIs.
func resourceBlocks(result json.RawMessage) []json.RawMessage {
	blocks := []json.RawMessage{}
	contents := elements(result, "contents")
	for _, content := range contents {
		block := json.RawMessage(`{"type":"resource","resource":` + string(content) + `}`)
		if b := wire.ReadBlock(block); b.HasText && len(contents) == 1 {
			block = wire.TextBlock(b.Text)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// promptBlocks turns the messages of a prompt into content blocks. If there are several messages, a block with the
// role precedes each.
func promptBlocks(result json.RawMessage) []json.RawMessage {
	blocks := []json.RawMessage{}
	messages := elements(result, "messages")
	for _, message := range messages {
		if len(messages) > 1 {
			blocks = append(blocks, wire.TextBlock(wire.MemberText(message, "role")+":"))
		}
		if content := wire.Member(message, "content"); content != nil {
			blocks = append(blocks, content)
		}
	}
	return blocks
}

// elements returns the elements of an array. The array is the value of a member of object; key is the name of this member.
func elements(object json.RawMessage, key string) (all []json.RawMessage) {
	_ = wire.Elements(wire.Member(object, key), func(one []byte) bool {
		all = append(all, one)
		return true
	})
	return all
}
