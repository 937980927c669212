package mcptest

import (
	"testing"
)

func TestStdio_WellBehaved(t *testing.T) {
	NoLeaks(t)
	s := Spec{Name: "good", Instructions: "Say echo."}.WithFiles(t)
	c, cmd, _ := child(t, s)
	r := c.handshake()
	t.Log(r.raw)
	c.call(1, "echo", `{"text":"hi"}`)
	if got := textOf(t, c.answer("1")); got != "hi" {
		t.Errorf("echo answered %q", got)
	}
	c.in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	log := s.Log(t)
	if len(log.Calls("echo")) != 1 || len(log.Event(EventEOF)) != 1 || len(log.Event(EventExit)) != 1 {
		t.Errorf("log: %+v", log)
	}
}
