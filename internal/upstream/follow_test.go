package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// subscribe returns the request that follows a resource.
func subscribe(uri string, updated func(params json.RawMessage)) *request.Request {
	return &request.Request{Params: wire.Encode(map[string]string{"uri": uri}), Subscription: &request.Subscription{Updated: updated}}
}

// TestFollow_refused: Follow returns even if the server refuses the subscription, or does not answer.
func TestFollow_refused(t *testing.T) {
	for name, fake := range map[string]mcptest.Spec{
		"legacy silent":  {HangMethods: []string{"resources/subscribe"}},
		"legacy refuses": {FailMethods: []string{"resources/subscribe"}},
		"modern silent":  {Era: mcptest.EraModern, HangMethods: []string{"subscriptions/listen"}},
		"modern refuses": {Era: mcptest.EraModern, FailMethods: []string{"subscriptions/listen"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake.Resources = json.RawMessage(`[{"uri":"a://1","name":"one"}]`)
				spec, _ := inProcess(t, fake)
				u := ready(t, spec)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := u.Follow(ctx, subscribe("a://1", func(json.RawMessage) {}), func() { t.Error("agreed") })
				if err == nil || ctx.Err() != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestFollow_idle: a server that would stop when idle keeps running while a client follows one of its resources.
// The subscription does not count towards the limit of open calls. It ends with the upstream.
func TestFollow_idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec, logs := inProcess(t, mcptest.Spec{Resources: json.RawMessage(`[{"uri":"a://1","name":"one"}]`)})
		spec.StopIdle, spec.Concurrency.Max = time.Minute, 1
		u := ready(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		agreed, told := make(chan struct{}), make(chan string, 10)
		var following sync.WaitGroup
		following.Go(func() {
			_ = u.Follow(ctx, subscribe("a://1", func(params json.RawMessage) { told <- string(params) }), func() { close(agreed) })
		})
		<-agreed
		time.Sleep(10 * time.Minute)
		if u.Status().State != catalog.Ready {
			t.Errorf("state %s", u.Status().State)
		}
		// A change of a resource below the followed one is reported too.
		for _, uri := range []string{"b://1", "a://1/part"} {
			if _, err := text(u, "notify", `{"method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(told) != 1 {
			t.Errorf("told %d times", len(told))
		}
		cancel()
		following.Wait()
		time.Sleep(3 * time.Minute)
		if u.Status().State != catalog.Idle {
			t.Errorf("state %s", u.Status().State)
		}
		if n := len(logs.all().Method("resources/unsubscribe")); n != 1 {
			t.Errorf("unsubscribed %d times", n)
		}
		following.Go(func() {
			if err := u.Follow(t.Context(), subscribe("a://1", func(json.RawMessage) {}), func() { go u.Close(0) }); !errors.As(err, new(*request.UnavailableError)) && !errors.As(err, new(*request.LostError)) {
				t.Error(err)
			}
		})
		following.Wait()
	})
}

// TestFollow_givenUp: if a client gives up before the server has answered the subscription, mcpx unsubscribes, since the server
// may still accept it.
func TestFollow_givenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec, logs := inProcess(t, mcptest.Spec{
			Resources: json.RawMessage(`[{"uri":"a://1","name":"one"}]`), HangMethods: []string{"resources/subscribe"},
		})
		u := ready(t, spec)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := u.Follow(ctx, subscribe("a://1", func(json.RawMessage) {}), func() { t.Error("agreed") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if n := len(logs.all().Method("resources/unsubscribe")); n != 1 {
			t.Errorf("unsubscribed %d times", n)
		}
	})
}

// TestFollow_modern: when the last client no longer follows a resource, mcpx cancels its subscriptions/listen. On a stream that all
// messages share, the server would go on reporting changes otherwise.
func TestFollow_modern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec, logs := inProcess(t, mcptest.Spec{Era: mcptest.EraModern, Resources: json.RawMessage(`[{"uri":"a://1","name":"one"}]`)})
		u := ready(t, spec)
		ctx, cancel := context.WithCancel(t.Context())
		agreed := make(chan struct{})
		var following sync.WaitGroup
		following.Go(func() {
			_ = u.Follow(ctx, subscribe("a://1", func(json.RawMessage) {}), func() { close(agreed) })
		})
		<-agreed
		cancel()
		following.Wait()
		synctest.Wait()
		cancelled := logs.all().Event(mcptest.EventCancel)
		if len(cancelled) != 1 || cancelled[0].Method != "subscriptions/listen" || cancelled[0].Text != "notification" {
			t.Errorf("cancelled: %+v", cancelled)
		}
	})
}

// TestOwnRequest_givenUp: if mcpx gives up a request of its own, it cancels that request at the server.
func TestOwnRequest_givenUp(t *testing.T) {
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec, logs := inProcess(t, mcptest.Spec{Era: era, HangMethods: []string{"prompts/list"}, Prompts: json.RawMessage(`[{"name":"one"}]`)})
				u := ready(t, spec)
				time.Sleep(spec.Timeouts.Connect + time.Hour)
				synctest.Wait()
				cancelled := logs.all().Event(mcptest.EventCancel)
				if len(cancelled) == 0 || cancelled[0].Method != "prompts/list" {
					t.Errorf("cancelled: %+v", cancelled)
				}
				mustEcho(t, u)
			})
		})
	}
}
