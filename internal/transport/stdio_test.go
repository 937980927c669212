package transport

import (
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// TestMovement_Process: any activity of a process counts as progress, not only messages.
func TestMovement_Process(t *testing.T) {
	command, args, env := mcptest.Spec{StderrFlood: -1}.Stdio(t)
	launch := Launch{Command: command, Args: args}
	for name, value := range env {
		launch.Env = append(launch.Env, name+"="+value)
	}
	l, err := NewDialer(Options{Type: Stdio, Launch: launch}).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Start(func(wire.Message, int64) {})
	e := l.Evidence()
	before := e.own.movement()
	mcptest.WaitFor(t, "movement", patience, func() bool { return e.own.movement() != before })
	whole := e.Movement()
	mcptest.WaitFor(t, "movement of the link", patience, func() bool { return e.Movement() != whole })
}
