package handover

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// PeerUID returns the user of the process at the other end of a connection.
func PeerUID(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int(peer.Uid)
		}
	})
	if failed != nil {
		err = failed
	}
	return uid, os.NewSyscallError("getsockopt", err)
}
