package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"mcpx/internal/upstream"
	"mcpx/internal/view"
	"mcpx/internal/wire"
)

// structuredHeader lets an HTTP client say for itself whether it wants
// structuredContent.
const structuredHeader = "Mcpx-Structured-Content"

// keepAlive is the longest silence on a stream that waits for events: what stands
// between may end it for less.
const keepAlive = 25 * time.Second

// HTTP is the streamable HTTP endpoint of both eras. It trusts its caller to
// have checked Origin, size and cancellations without a session (package
// httpd).
//
// mcp-go does the protocol. Calls are answered here from the raw bytes: mcp-go
// parses each message six times, which is more work than the call, writes parts
// of the answer anew, and mixes up what belongs to the calls of one session (see
// callStream).
func (f *Front) HTTP() http.Handler {
	streamable := server.NewStreamableHTTPServer(f.server,
		server.WithStateful(true),
		server.WithSessionIdleTTL(sessionIdle),
		server.WithHeartbeatInterval(keepAlive),
		server.WithStreamableHTTPLogger(f.log),
	)
	f.serving.Lock()
	f.servers = append(f.servers, streamable)
	f.serving.Unlock()
	return &httpFront{front: f, mcp: streamable}
}

type httpFront struct {
	front *Front
	mcp   http.Handler
}

// ReadBody is the body of a request that has been read and parsed already: who
// stands before the endpoint has looked into it, and need not have it done twice.
type ReadBody struct {
	*bytes.Reader
	data    []byte
	message wire.Message
}

// NewReadBody makes a body of what was read and parsed.
func NewReadBody(data []byte, message wire.Message) *ReadBody {
	return &ReadBody{bytes.NewReader(data), data, message}
}

// Close implements io.Closer.
func (*ReadBody) Close() error { return nil }

// readBody returns the body of a request, parsed if it is one message.
func readBody(r *http.Request) (*ReadBody, error) {
	if body, ok := r.Body.(*ReadBody); ok {
		return body, nil
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	message, err := wire.Parse(data)
	if err != nil {
		message = wire.Message{} // mcp-go shall say what is wrong with it
	}
	return NewReadBody(data, message), nil
}

// ServeHTTP implements http.Handler.
func (h *httpFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	session := h.front.sessions.get(r.Header.Get("Mcp-Session-Id"))
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		if modernHeader(r) {
			h.mcp.ServeHTTP(w, r) // refuses it
		} else {
			h.streamOrEnd(w, r, session)
		}
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "this endpoint has GET, POST and DELETE", http.StatusMethodNotAllowed)
		return
	case err != nil || media != "application/json":
		h.mcp.ServeHTTP(w, r)
		return
	}
	body, err := readBody(r)
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if session != nil {
		session.notice(body.message)
	}
	if !h.answer(w, r, session, body) {
		r.Body = body
		h.mcp.ServeHTTP(w, r)
	}
}

func modernHeader(r *http.Request) bool {
	return mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
}

// answer answers what mcp-go does not do as it should: calls, subscriptions of
// the modern era, and requests without a session. It reports false, with nothing
// written, for everything else.
func (h *httpFront) answer(w http.ResponseWriter, r *http.Request, session *httpSession, body *ReadBody) bool {
	m := body.message
	if m.Method == "" || m.Method == string(mcp.MethodInitialize) || !json.Valid(body.data) {
		return false
	}
	switch m.Method {
	case string(mcp.MethodToolsCall):
		call, ok := readCall(m.Params)
		if ok && m.ID != nil && h.call(w, r, session, m, call) {
			return true
		}
	case string(mcp.MethodSubscriptionsListen):
		request, ok := readListen(m.Params)
		if ok && m.ID != nil && agrees(r, m, &request.requestMeta) {
			stream := h.front.newCallStream(w, r)
			stream.answerEvent(reply(m.ID, "result", h.front.listen(r.Context(), m.ID, request, stream.event, stream.comment)))
			return true
		}
	}
	if r.Header.Get("Mcp-Session-Id") != "" || modernHeader(r) {
		return false
	}
	if meta, ok := metaOf(m.Params); ok && !meta.modern() {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(fault(m.ID, codeRefused, "the header Mcp-Session-Id is missing; send initialize first"))
		return true
	}
	return false
}

// call answers a call; it reports false, with nothing written, where mcp-go has
// to say what is wrong with it.
func (h *httpFront) call(w http.ResponseWriter, r *http.Request, session *httpSession, m wire.Message, call rawCall) bool {
	c := view.Call{Client: &upstream.Client{}, Name: call.name, Arguments: call.arguments, Meta: call.trace}
	least := call.level
	ctx, cancel := h.front.callContext(r.Context(), session)
	defer cancel()
	switch {
	case call.modern() && agrees(r, m, &call.requestMeta):
		forget := h.front.stranger(c.Client, call.client)
		defer forget()
		c.Client.Peer = peerOf(r)
	case session != nil && isLegacy(r, &call.requestMeta) && h.keep(session, r):
		request := session.open.begin(m.ID, cancel)
		defer session.open.end(request)
		c.Client.Name, c.Client.ID, least = session.client, session.id, session.level()
	default:
		return false
	}
	c.Structured = view.StructuredPolicy(strings.ToLower(r.Header.Get(structuredHeader)))
	stream := h.front.newCallStream(w, r)
	defer stream.close()
	if stream.events {
		stream.tell(h.front, &c, call.token, least)
	}
	result, err := h.front.view.Call(ctx, c)
	unknown, _ := errors.AsType[*view.UnknownToolError](err)
	stream.close()
	switch why := context.Cause(ctx); {
	case unknown != nil:
		if call.modern() {
			stream.status = http.StatusBadRequest
		}
		stream.answer(fault(m.ID, mcp.INVALID_PARAMS, unknown.Message))
	case err != nil && (errors.Is(why, errStopping) || errors.Is(why, errSessionEnded)):
		stream.answer(fault(m.ID, mcp.REQUEST_INTERRUPTED, "cancelled: "+why.Error()))
	case err != nil:
		// Taken back, or nobody is there any more: there is nothing to say.
		stream.nothing()
	default:
		stream.answer(reply(m.ID, "result", h.front.encodeResult(result, call.modern())))
	}
	return true
}

// agrees reports whether a request is one of the era without sessions, and its
// headers say what its body says (SEP-2243, SEP-2575). mcp-go refuses the others.
func agrees(r *http.Request, m wire.Message, meta *requestMeta) bool {
	return meta.modern() && meta.served() &&
		r.Header.Get(mcp.HeaderProtocolVersion) == meta.version && r.Header.Get(mcp.HeaderLastEventID) == "" &&
		mcp.ValidateStandardHeaders(r.Header.Get, meta.version, mcp.MCPMethod(m.Method), m.Params) == nil
}

// isLegacy reports whether a request is one of the era with sessions, in a
// revision that mcp-go knows.
func isLegacy(r *http.Request, meta *requestMeta) bool {
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	return !meta.modern() && (version == "" || (mcp.IsValidProtocolVersion(version) && !mcp.IsModernProtocol(version)))
}

// metaOf reads the _meta of params, which may both be absent.
func metaOf(params json.RawMessage) (requestMeta, bool) {
	var meta json.RawMessage
	if len(params) > 0 && params[0] == '{' {
		_ = wire.Fields(params, func(key string, value []byte) bool {
			if key == "_meta" {
				meta = value
			}
			return true
		})
	}
	return readMeta(meta)
}

// stranger makes c the caller of a request of the modern era over HTTP. Nothing
// tells its clients apart: each request is a client of its own, so that nothing
// of one reaches another. The func it returns ends that client.
func (f *Front) stranger(c *upstream.Client, info *mcp.Implementation) (forget func()) {
	if info != nil {
		c.Name = info.Name
	}
	c.ID = "request " + strconv.FormatInt(f.requests.Add(1), 10)
	return func() { f.view.Forget(c) }
}

// peerOf names the program at the other end of the connection; empty where
// something stands between that may speak for several.
func peerOf(r *http.Request) string {
	for _, header := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(header) != "" {
			return ""
		}
	}
	return "connection " + r.RemoteAddr
}
