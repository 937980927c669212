package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestStream: many bytes can go in both directions at the same time. If one side ends the stream, it ends at the other side too.
// If the serving function returns an error, Read of the other side returns it.
func TestStream(t *testing.T) {
	nats := mcptest.StartNATS(t)
	one, two := join(t, nats.URL, "one"), join(t, nats.URL, "two")
	meet(t, one, two)
	served := make(chan error, 10)
	two.Accept("test", func(ctx context.Context, first []byte, s *Stream) error {
		switch string(first) {
		case "echo":
			_, err := io.Copy(s, s)
			served <- err
			return err
		case "wait":
			_, _ = s.Write([]byte("!"))
			<-ctx.Done()
			served <- context.Cause(ctx)
			return nil
		}
		return errors.New("not here")
	})
	open := func(first string) *Stream {
		t.Helper()
		s, err := one.Open(t.Context(), two.Self(), "test", []byte(first))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s, err := one.Open(t.Context(), two.Self(), "test", make([]byte, maxPiece+1)); err == nil {
		_, err = s.Read(make([]byte, 1))
		t.Errorf("an opening of two pieces is not refused; then Read: %v", err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MB: much more than the windows
	s := open("echo")
	go func() { _, _ = s.Write(data) }() // ends when all is read
	got := make([]byte, len(data))
	if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the echo differs: %v", err)
	}
	_ = s.Close()
	if err := <-served; err == nil {
		t.Error("the other side sees no end")
	}
	if _, err := s.Read(got); err == nil {
		t.Error("a closed stream can be read")
	}
	s = open("nothing")
	if _, err := s.Read(got); err == nil || !strings.Contains(err.Error(), "not here") {
		t.Errorf("refused: %v", err)
	}
	_ = s.Close()
	s = open("wait")
	if _, err := io.ReadFull(s, got[:1]); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { // ends with the replica
		_, err := s.Read(got)
		ended <- err
	}()
	two.Close()
	if err := <-ended; err == nil {
		t.Errorf("the replica has ended: %v", err)
	}
	<-served
	if _, err := one.Open(t.Context(), two.Self(), "test", nil); !errors.Is(err, errGone) {
		t.Errorf("a replica that has ended: %v", err)
	}
}
