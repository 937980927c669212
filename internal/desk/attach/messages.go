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
	// beatEvery is how often a daemon sends its commands a sign that it is alive.
	beatEvery = 3 * time.Second
	// silence is how long a command waits for a sign of the daemon before it gives up.
	silence = 10 * time.Second
	// handshake is how long a daemon waits for the first messages of a command that has connected.
	handshake = 5 * time.Second
	// maxBytes is the maximum size of a message, in bytes. It is enough for a [Start], because no system allows a process an
	// environment of this size.
	maxBytes = 8 << 20
)

// Other builds of mcpx must be able to read these messages: the commands mcpx status, logs, restart and stop also speak to daemons
// of older and newer builds.

// hello is the first message; the command sends it. The daemon refuses a command if Spaces differs from the daemon's own spaces.
type hello struct {
	// Spaces is what the function spaces returns in the command's process: its namespaces, groups, rights and limits.
	Spaces string `json:"spaces"`
}

// welcome is the daemon's answer to hello. Refused is the reason why the daemon refuses the command; it is empty if the daemon
// accepts the command.
type welcome struct {
	Refused string `json:"refused,omitempty"`
}

// Start says which command a session runs, and where it was started.
type Start struct {
	// Command is the name of the command. Options has the options of the command as JSON; package attach passes them on unread.
	Command string          `json:"command"`
	Options json.RawMessage `json:"options"`
	// Folder, Environ and Umask are the folder, environment and umask of the command's process. PID is the ID of the process.
	Folder  string   `json:"folder"`
	Environ []string `json:"environ"`
	Umask   int      `json:"umask"`
	PID     int      `json:"pid"`
}

// asked is a message that the command sends during its session. Stop asks the daemon to end the session. Reload asks it to read the
// session's config again.
type asked struct {
	Stop   bool `json:"stop,omitempty"`
	Reload bool `json:"reload,omitempty"`
}

// sign is a message of the daemon during a session. An empty sign says that the daemon is alive; the last sign has the exit code.
// If the daemon could not begin the session after the welcome, Failed says why.
type sign struct {
	Exit   *int   `json:"exit,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// say writes a message before the deadline: its length in four bytes, then JSON. The length lets the reader stop exactly at the end
// of the message; the bytes after it may carry file descriptors.
func say(conn *net.UnixConn, deadline time.Time, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(deadline)
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// hear reads a message before the deadline; a zero deadline means no limit.
func hear(conn *net.UnixConn, deadline time.Time, message any) error {
	_ = conn.SetReadDeadline(deadline)
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxBytes {
		return fmt.Errorf("a message of %d bytes is too long", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}
