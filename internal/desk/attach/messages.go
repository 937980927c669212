package attach

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// beatEvery is how often a daemon gives its commands a sign.
	beatEvery = 3 * time.Second
	// silence is how long a command waits for a sign before it ends.
	silence = 10 * time.Second
	// handshake is how long a daemon waits for the messages of a command that has connected.
	handshake = 5 * time.Second
	// mostBytes is the longest message. The environment of a process is below that on all systems.
	mostBytes = 8 << 20
)

// hello is the first message of a command. A daemon refuses what it cannot serve.
type hello struct {
	// Spaces are the namespaces, the rights and the limits of the command; see the func spaces.
	Spaces string `json:"spaces"`
}

// welcome is the answer to hello.
type welcome struct {
	PID     int    `json:"pid"`
	Refused string `json:"refused,omitempty"`
}

// Start is what a command wants, and where it was started.
type Start struct {
	// Command is the name of the command, and Options are its options, which only the host reads.
	Command string          `json:"command"`
	Options json.RawMessage `json:"options"`
	// Folder, Environ and Umask are those of the command's process, and PID is its id.
	Folder  string   `json:"folder"`
	Environ []string `json:"environ"`
	Umask   int      `json:"umask"`
	PID     int      `json:"pid"`
}

// asked is what a command says during its session.
type asked struct {
	Stop   bool `json:"stop,omitempty"`
	Reload bool `json:"reload,omitempty"`
}

// sign is what the daemon says during a session: an empty one that it lives, then one with the exit code. Failed is why it could
// not begin a session after the welcome.
type sign struct {
	Exit   *int   `json:"exit,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// say writes a message before the deadline: its length in four bytes, and JSON. So the reader takes no byte of what
// follows, which may carry files.
func say(conn *net.UnixConn, deadline time.Time, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(deadline)
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// hear reads a message before the deadline.
func hear(conn *net.UnixConn, deadline time.Time, message any) error {
	_ = conn.SetReadDeadline(deadline)
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > mostBytes {
		return fmt.Errorf("a message of %d bytes is too long", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}
