package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/catalog"
)

const (
	// maxPages and maxTools bound the catalogue of one server.
	maxPages = 1000
	maxTools = 20000
)

// listTools reads the whole catalogue: every page, no page twice. Where a later
// page cannot be read, what came before is kept, and s.missing is why; but a whole
// catalogue is not given up for a part.
func (s *session) listTools(ctx context.Context) (tools []catalog.Tool, faults []string, err error) {
	s.missing = nil
	seen := make(map[string]bool)
	var cursor json.RawMessage
	for page := 0; ; page++ {
		decoded, err := s.readPage(ctx, cursor)
		var rpc *RPCError
		if errors.As(err, &rpc) && rpc.Code == mcp.METHOD_NOT_FOUND && page == 0 {
			return nil, nil, nil
		}
		if err != nil {
			if page == 0 || s.whole || ctx.Err() != nil || s.link.cause() != nil {
				return nil, nil, fmt.Errorf("listing tools: %w", err)
			}
			s.missing = err
			faults = append(faults, fmt.Sprintf("page %d of tools/list cannot be read, what came before is kept: %s", page+1, s.spec.clean(unwrapNotSent(err).Error(), 300)))
			break
		}
		tools = append(tools, decoded.Tools...)
		faults = append(faults, decoded.Faults...)
		cursor = decoded.NextCursor
		switch {
		case cursor == nil:
		case seen[string(cursor)]:
			faults = append(faults, "tools/list repeats a cursor; what was read until then is kept")
			cursor = nil
		case page+1 >= maxPages || len(tools) >= maxTools:
			faults = append(faults, fmt.Sprintf("tools/list does not end; the first %d tools are kept", min(len(tools), maxTools)))
			cursor = nil
		}
		if cursor == nil {
			break
		}
		seen[string(cursor)] = true
	}
	tools = tools[:min(len(tools), maxTools)]
	tools, twice := catalog.Unique(tools)
	faults = append(faults, twice...)
	tools, bad := s.mirrorHeaders(tools)
	return tools, append(faults, bad...), nil
}

func (s *session) readPage(ctx context.Context, cursor json.RawMessage) (catalog.Page, error) {
	result, err := s.toolsPage(ctx, cursor)
	if err != nil {
		return catalog.Page{}, err
	}
	if len(result) == 0 || result[0] != '{' && string(result) != "null" {
		return catalog.Page{}, errors.New("reading tools/list: the result is not an object")
	}
	return catalog.DecodePage(result)
}

func (s *session) toolsPage(ctx context.Context, cursor json.RawMessage) (json.RawMessage, error) {
	params := []byte("{}")
	if cursor != nil {
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return s.do(ctx, "tools/list", params)
}

// mirrorHeaders finds the tools that want arguments in HTTP headers, and
// refuses those that ask for it wrongly (SEP-2243: only that one is dropped).
func (s *session) mirrorHeaders(tools []catalog.Tool) (kept []catalog.Tool, faults []string) {
	if !s.modern || !s.link.traits().headers {
		return tools, nil
	}
	kept, mirrored, faults := headerTools(tools)
	s.mu.Lock()
	s.headerTools = mirrored
	s.mu.Unlock()
	return kept, faults
}

// headerTools has the tools of a catalogue that want arguments in HTTP headers,
// by name, and faults for those that ask for it wrongly, which are not kept.
func headerTools(tools []catalog.Tool) (kept []catalog.Tool, mirrored map[string]*mcp.Tool, faults []string) {
	mirrored = make(map[string]*mcp.Tool)
	for _, tool := range tools {
		if bytes.Contains(tool.InputSchema, []byte(`"x-mcp-header"`)) {
			var typed mcp.Tool
			err := json.Unmarshal(tool.Raw, &typed)
			if err == nil {
				err = mcp.ValidateParamHeaderAnnotations(&typed)
			}
			if err != nil {
				faults = append(faults, fmt.Sprintf("tool %q: x-mcp-header: %v", tool.Name, err))
				continue
			}
			mirrored[tool.Name] = &typed
		}
		kept = append(kept, tool)
	}
	return kept, mirrored, faults
}

// headerTool is the tool of that name if it wants arguments in HTTP headers, else
// nil.
func (s *session) headerTool(name string) *mcp.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spec.Catalogue != nil {
		// A catalogue that has changed is another slice.
		if tools := s.spec.Catalogue(); len(tools) != len(s.headersOf) || len(tools) > 0 && &tools[0] != &s.headersOf[0] {
			s.headersOf = tools
			_, s.headerTools, _ = headerTools(tools)
		}
	}
	return s.headerTools[name]
}

// ping asks for a sign of life: server/discover in the modern era, ping in the
// legacy one. A JSON-RPC error is one too.
func (s *session) ping(ctx context.Context) error {
	method := "ping"
	if s.modern {
		method = string(mcp.MethodServerDiscover)
	}
	_, err := s.do(ctx, method, nil)
	return unlessRPC(err)
}

// pingTools asks for a sign of life by way of the tools.
func (s *session) pingTools(ctx context.Context) error {
	_, err := s.toolsPage(ctx, nil)
	return unlessRPC(err)
}

// unlessRPC is err, but nil for a JSON-RPC error: that is an answer.
func unlessRPC(err error) error {
	var rpc *RPCError
	if errors.As(err, &rpc) {
		return nil
	}
	return err
}

// pingUnknown reports an answer that can mean that the server does not know ping.
func pingUnknown(err error) bool {
	var status *statusError
	var answer *AnswerError
	switch {
	case errors.As(err, &answer):
		return true
	case errors.As(err, &status):
		return status.code >= 400 && status.code <= http.StatusNotImplemented && status.code != http.StatusTooManyRequests
	}
	return false
}
