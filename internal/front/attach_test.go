package front

import (
	"context"
	"sync"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/view"
)

// spy is a view that notes which clients are attached to it, and which call. With a traits func it says what that returns.
type spy struct {
	view.View
	traits func() view.Traits

	mu       sync.Mutex
	attached []*attachment
	calls    []*caller.Client
}

type attachment struct {
	client   string
	as       view.Attachment
	detached int
}

// spied makes a front of the view of f, with a spy in between, that ends with the test.
func spied(t *testing.T, f shown, options Options) (*spy, *Front) {
	t.Helper()
	s := &spy{View: f.two}
	front := New(s, options)
	t.Cleanup(front.Close)
	return s, front
}

func (s *spy) Traits() view.Traits {
	if s.traits != nil {
		return s.traits()
	}
	return s.View.Traits()
}

func (s *spy) Attach(client *caller.Client, as view.Attachment) (detach func()) {
	one := &attachment{client: client.ID, as: as}
	s.mu.Lock()
	s.attached = append(s.attached, one)
	s.mu.Unlock()
	end := s.View.Attach(client, as)
	return func() {
		s.mu.Lock()
		one.detached++
		s.mu.Unlock()
		end()
	}
}

func (s *spy) Call(ctx context.Context, call view.Call) (*executor.Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, call.Client)
	s.mu.Unlock()
	return s.View.Call(ctx, call)
}

// open counts the attachments of a client that are not detached, empty = of all: the ones that listen, or the others.
func (s *spy) open(client string, listens bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.attached {
		if (client == "" || client == one.client) && (one.as.Changed != nil) == listens && !one.as.Sole && one.detached == 0 {
			n++
		}
	}
	return n
}
