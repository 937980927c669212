package front

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestUnsubscribe_early: a client unsubscribes before the server has accepted its subscription. It gets an
// answer to both requests, and mcpx unsubscribes at the server.
func TestUnsubscribe_early(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := offering("fake", mcptest.EraLegacy)
	spec.HangMethods = []string{"resources/subscribe"}
	fake := spec.HTTP(t)
	f := (&once{t: t}).front(Options{}, view.Options{}, remote("fake", fake))
	f.registry.WaitListed(t.Context(), nil)
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	t.Cleanup(f.Close)
	client := newWebClient(t, web, legacyEra)
	request := func(ctx context.Context, id, method string) string {
		response, err := client.send(ctx, "POST", method, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{"uri":"fake://1"}}`)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		return string(body)
	}
	subscribed := make(chan string, 1)
	go func() { subscribed <- request(t.Context(), "1", "resources/subscribe") }() // the goroutine ends with the answer
	mcptest.WaitFor(t, "the subscription", patience, func() bool { return len(fake.Log().Method("resources/subscribe")) == 1 })
	if answer := request(t.Context(), "2", "resources/unsubscribe"); !strings.Contains(answer, `"result":{}`) {
		t.Error(answer)
	}
	if answer := <-subscribed; !strings.Contains(answer, `"code":-32800`) {
		t.Error(answer)
	}
	mcptest.WaitFor(t, "the server to be told", patience, func() bool { return len(fake.Log().Method("resources/unsubscribe")) == 1 })
}
