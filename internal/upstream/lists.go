package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

const (
	// maxPages and maxItems bound how many pages and items are read of one list.
	maxPages = 1000
	maxItems = 20000
)

// list reads the pages of a list, within the bounds above. If the server does not know the method, the list is empty. If a
// later page than the first cannot be read, list returns the pages before it, and the error as missing. But if the parameter
// whole is true, or if ctx or the session has ended, list fails: it returns that error, or why the session has ended, as err. It
// also fails if it cannot read the first page, or if [Catalogue.Admit] refuses the list.
func (s *session) list(ctx context.Context, kind catalog.Kind, whole bool) (all catalog.List, missing, err error) {
	method := kind.Method()
	seen := make(map[string]bool)
	fault := func(format string, args ...any) {
		all.Faults = append(all.Faults, fmt.Sprintf(format, args...))
	}
	var cursor json.RawMessage
	size := 0
	for n := 1; ; n++ {
		page, err := s.page(ctx, kind, cursor)
		rpc, isRPC := errors.AsType[*wire.RPCError](err)
		switch {
		case isRPC && rpc.Code == mcp.METHOD_NOT_FOUND && n == 1:
			return all, nil, nil
		case err != nil && (n == 1 || whole || ctx.Err() != nil || s.link.Life().Cause() != nil):
			return all, nil, s.ended(fmt.Errorf("listing %s: %w", kind, err))
		case err != nil:
			fault("page %d of %s cannot be read, what came before is kept: %s", n, method, s.spec.Secrets.Line(err.Error(), 300))
			return all, err, nil
		}
		all.Items = append(all.Items, page.Items...)
		all.Faults = append(all.Faults, page.Faults...)
		for _, item := range page.Items {
			size += len(item)
		}
		if admit := s.spec.Catalogue.Admit; admit != nil {
			if err := admit(kind, len(all.Items), size); err != nil {
				return all, nil, err
			}
		}
		switch cursor = page.NextCursor; {
		case cursor == nil:
			return all, nil, nil
		case seen[string(cursor)]:
			fault("%s repeats a cursor; what was read until then is kept", method)
			return all, nil, nil
		case n >= maxPages || len(all.Items) >= maxItems:
			all.Items = all.Items[:min(len(all.Items), maxItems)]
			fault("%s does not end; the first %d %s are kept", method, len(all.Items), kind)
			return all, nil, nil
		}
		seen[string(cursor)] = true
	}
}

// page reads one page of a list. It reads the first page if cursor is nil.
func (s *session) page(ctx context.Context, kind catalog.Kind, cursor json.RawMessage) (catalog.List, error) {
	params := []byte("{}")
	if cursor != nil {
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	result, err := s.do(ctx, kind.Method(), params)
	if err != nil {
		return catalog.List{}, err
	}
	if len(result) == 0 || result[0] != '{' && string(result) != "null" {
		return catalog.List{}, fmt.Errorf("reading %s: the result is not an object", kind.Method())
	}
	return catalog.ReadPage(kind, result)
}

// listTools reads the tools. If it cannot read a page after the first, what it does depends on s.relisting.whole: if that is
// true, listTools returns an error; otherwise it returns the tools that it has read, and sets s.relisting.missing.
func (s *session) listTools(ctx context.Context) (tools []catalog.Tool, faults []string, err error) {
	all, missing, err := s.list(ctx, catalog.Tools, s.relisting.whole)
	if s.relisting.missing = missing; err != nil {
		return nil, nil, err
	}
	tools, faults = catalog.DecodeTools(all.Items)
	tools, twice := catalog.Unique(tools)
	tools, bad := s.mirrorHeaders(tools)
	return tools, slices.Concat(all.Faults, faults, twice, bad), nil
}

// mirrored holds the tools, by name, whose arguments are copied into HTTP headers (SEP-2243). Only modern requests over
// HTTP have such headers. The session's lock guards mirrored.
type mirrored struct {
	tools  map[string]*mcp.Tool
	source []catalog.Tool // the result of [Catalogue.Shared] from which tools was computed
}

// mirrorHeaders stores the tools whose arguments are copied into HTTP headers. As SEP-2243 requires, it drops tools that
// declare such headers wrongly. It does nothing in a session without such headers.
func (s *session) mirrorHeaders(tools []catalog.Tool) (kept []catalog.Tool, faults []string) {
	if !s.Modern || !s.link.Traits().Headers {
		return tools, nil
	}
	kept, mirrored, faults := headerTools(tools)
	s.mu.Lock()
	s.mirrored.tools = mirrored
	s.mu.Unlock()
	return kept, faults
}

// headerTools finds the tools, by name, whose arguments are copied into HTTP headers. Tools that declare such
// headers wrongly are not in kept; faults describes them.
func headerTools(tools []catalog.Tool) (kept []catalog.Tool, mirrored map[string]*mcp.Tool, faults []string) {
	mirrored = make(map[string]*mcp.Tool)
	for _, tool := range tools {
		if bytes.Contains(tool.InputSchema, []byte(`"x-mcp-header"`)) {
			var typed mcp.Tool
			err := json.Unmarshal(tool.Raw, &typed)
			if err == nil {
				err = mcp.ValidateParamHeaderAnnotations(&typed)
			}
			var schema any
			if err == nil {
				err = json.Unmarshal(tool.InputSchema, &schema)
			}
			if err == nil && strayHeader(schema, true, true) {
				err = errors.New("it is not only at properties that are reached from the root by properties alone")
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

// strayHeader reports whether a decoded schema has an x-mcp-header in a place where SEP-2243 does not allow it. SEP-2243 allows it
// only at a property that is reached from the root by properties alone. reached means that schema is the root (isRoot) or is
// reached in this way.
func strayHeader(schema any, reached, isRoot bool) bool {
	if all, ok := schema.([]any); ok {
		return slices.ContainsFunc(all, func(one any) bool { return strayHeader(one, false, false) })
	}
	keywords, _ := schema.(map[string]any)
	for keyword, value := range keywords {
		stray := false
		switch keyword {
		case "x-mcp-header":
			stray = !reached || isRoot
		case "const", "default", "enum", "examples": // values, not schemas
		case "properties", "$defs", "definitions", "dependentSchemas", "patternProperties":
			named, _ := value.(map[string]any)
			for _, one := range named {
				stray = stray || strayHeader(one, reached && keyword == "properties", false)
			}
		default:
			stray = strayHeader(value, false, false)
		}
		if stray {
			return true
		}
	}
	return false
}

// headerTool returns the tool of that name if its arguments are copied into HTTP headers, else nil.
func (s *session) headerTool(name string) *mcp.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spec.Catalogue.Shared != nil {
		if tools := s.spec.Catalogue.Shared(); !catalog.SameTools(tools, s.mirrored.source) {
			s.mirrored.source = tools
			_, s.mirrored.tools, _ = headerTools(tools)
		}
	}
	return s.mirrored.tools[name]
}

// wrongHeaders reports whether the server refused a call because of its HTTP headers (SEP-2243). The server has not executed such a
// call. The tool may now need other headers, so reading the tools again can help. wrongHeaders returns false in a session that does
// not read the tools itself (see [Catalogue.Shared]).
func (s *session) wrongHeaders(method string, err error) bool {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	return ok && rpc.Code == mcp.HEADER_MISMATCH && method == string(mcp.MethodToolsCall) && s.Modern && s.link.Traits().Headers &&
		s.spec.Catalogue.Shared == nil
}

// ping tests whether the server answers. If tools is true, it sends tools/list. Otherwise it sends server/discover in
// the modern era, and ping in the legacy era. A JSON-RPC error is an answer too.
func (s *session) ping(ctx context.Context, tools bool) error {
	method, params := "ping", json.RawMessage(nil)
	switch {
	case tools:
		method, params = catalog.Tools.Method(), json.RawMessage("{}")
	case s.Modern:
		method = string(mcp.MethodServerDiscover)
	}
	_, err := s.do(ctx, method, params)
	if _, answered := errors.AsType[*wire.RPCError](err); answered {
		return nil
	}
	return err
}

// pingUnknown reports whether err can mean that the server does not know ping.
func pingUnknown(err error) bool {
	if status, ok := errors.AsType[*transport.StatusError](err); ok {
		return status.Code >= 400 && status.Code <= http.StatusNotImplemented && status.Code != http.StatusTooManyRequests
	}
	_, odd := errors.AsType[*request.AnswerError](err)
	return odd
}
