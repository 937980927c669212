package cluster

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"mcpx/internal/mcptest"
)

// TestLeave: after Leave, a replica is still live for the others, but no longer stays. Until Finish returns, it answers
// questions, and completes a long answer that it has begun. The others get ErrUntaken for later questions.
func TestLeave(t *testing.T) {
	mcptest.NoLeaks(t)
	here, there := two(t)
	long, asked, release := bytes.Repeat([]byte("x"), 20*maxPiece), make(chan struct{}), make(chan struct{})
	there.Answer("long", func(_ context.Context, _ string, _ []byte, write func([]byte) error) error {
		close(asked)
		<-release
		return write(long)
	})
	there.Answer("echo", echo)
	type outcome struct {
		data []byte
		err  error
	}
	answer := make(chan outcome, 1)
	ask := func(kind string) (data []byte, err error) {
		for piece, failure := range here.Ask(t.Context(), there.Self(), kind, []byte("a")) {
			data, err = append(data, piece...), failure
		}
		return data, err
	}
	go func() { // ends with the answer
		data, err := ask("long")
		answer <- outcome{data, err}
	}()
	<-asked
	there.Leave()
	mcptest.WaitFor(t, "the others know", wait, func() bool { return !here.Stays(there.Self()) })
	if data, err := ask("echo"); !here.IsLive(there.Self()) || !there.Stays(there.Self()) || string(data) != "a" || err != nil {
		t.Errorf("while it leaves: %q, %v", data, err)
	}
	finished := make(chan struct{})
	go func() { // ends with the long answer
		defer close(finished)
		there.Finish(t.Context())
		if data, err := ask("echo"); !errors.Is(err, ErrUntaken) {
			t.Errorf("after the last answer: %q, %v", data, err)
		}
		there.Close()
	}()
	close(release)
	if got := <-answer; got.err != nil || !bytes.Equal(got.data, long) {
		t.Errorf("the long answer: %d bytes, %v", len(got.data), got.err)
	}
	<-finished
	// Before that, the question would be sent, and its error would be that the replica has ended.
	mcptest.WaitFor(t, "the other is gone", wait, func() bool { return here.replicas() == 1 })
	if _, err := ask("echo"); !errors.Is(err, ErrUntaken) {
		t.Errorf("after its end: %v", err)
	}
}

// TestLeave_Gone: a replica that calls Leave and Close at once is removed. The others do not take a late message from it for a
// new replica, although messages to all and messages to one replica may arrive in another order.
func TestLeave_Gone(t *testing.T) {
	mcptest.NoLeaks(t)
	url := mcptest.StartNATS(t).URL
	here := joinPatient(t, url, "here")
	for range 20 {
		there := joinPatient(t, url, "there")
		meet(t, here, there)
		there.Leave()
		there.Close()
		mcptest.WaitFor(t, "the other is gone", wait, func() bool { return here.replicas() == 1 })
		here.takeBeat(&head{From: there.Self(), Do: doBeat})
		if here.replicas() != 1 {
			t.Error("a late beat looks like a new replica")
		}
	}
}
