package page

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// ownPeer reports whether a program of this user or of root has opened the connection from remote to host, both addresses of this
// machine. The page accepts a link of mcpx ui only over such a connection (see [Links]). The reason: mcpx passes the link to the
// browser as an argument of its command line, which other users of the machine can read, and they can connect to the page too.
//
// ownPeer returns false for a connection that the kernel does not list. Under WSL, the kernel does not list the connections of
// Windows' browsers, so ownPeer always returns true there.
func ownPeer(remote, host string) bool {
	if os.Getenv("WSL_DISTRO_NAME") != "" {
		return true
	}
	from, to := kernelAddress(remote), kernelAddress(host)
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, _ := os.ReadFile(file) // a file that cannot be read counts as an empty table
		for line := range strings.Lines(string(table)) {
			// The columns of a line are: number, local address, remote address, state, three figures of queues and timers, user.
			// In tcp6, an IPv4 address has a prefix, so only the ends of the addresses are compared.
			fields := strings.Fields(line)
			if len(fields) < 8 || !strings.HasSuffix(fields[1], from) || !strings.HasSuffix(fields[2], to) || fields[3] != established {
				continue
			}
			return fields[7] == "0" || fields[7] == strconv.Itoa(os.Getuid())
		}
	}
	return false
}

// established is the state of a connection that is open at both ends. When one end is closed, the kernel may no longer know the
// user of the connection.
const established = "01"

// kernelAddress returns the address of an IPv4 connection in the form of the kernel's table, or "none", which matches no entry, for
// any other text.
func kernelAddress(text string) string {
	address, err := netip.ParseAddrPort(text)
	if err != nil || !address.Addr().Unmap().Is4() {
		return "none"
	}
	ip := address.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), address.Port())
}
