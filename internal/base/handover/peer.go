//go:build unix

package handover

import (
	"net"
	"os"
)

// PeerUID returns the user of the process at the other end of a connection.
func PeerUID(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { uid, err = peerUID(int(fd)) })
	if failed != nil {
		err = failed
	}
	return uid, os.NewSyscallError("getsockopt", err)
}
