package page

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"mcpx/internal/mcptest"
)

const (
	asOtherUser = "MCPX_TEST_SIGN_IN"
	nobody      = 65534
)

// In a process with asOtherUser=HOST BODY this test binary sends body to a page, and prints the answer.
func init() {
	host, body, ok := strings.Cut(os.Getenv(asOtherUser), " ")
	if !ok {
		return
	}
	answer, err := http.Post("http://"+host+"/ui/session", "application/json", strings.NewReader(body))
	if err == nil {
		err = answer.Write(os.Stdout)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// TestLinks_OtherUser: another user of this machine who has read a link in the list of processes gets no session, and the user
// whose link it is still does.
func TestLinks_OtherUser(t *testing.T) {
	s, links := opened(t)
	host := links.Host
	body := `{"link":"` + secretOf(t, links.New()) + `"}`
	run := func(uid uint32) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = []string{asOtherUser + "=" + host + " " + body}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if os.Getuid() == 0 {
		if answer := run(nobody); !strings.Contains(answer, " 403 ") || !strings.Contains(answer, `"other_user"`) {
			t.Errorf("another user got %s", answer)
		}
	}
	if status, answer := s.do(t, "POST", "/ui/session", body); status != 200 {
		t.Errorf("the user got %d %s", status, answer)
	}
}

// TestOwnPeer: ownPeer returns true for a connection of this process, and false for addresses between which there is no
// connection.
func TestOwnPeer(t *testing.T) {
	mcptest.NoLeaks(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	host := listener.Addr().String()
	connection, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	remote := connection.LocalAddr().String()
	if !ownPeer(remote, host) {
		t.Error("a connection of this process is not its own")
	}
	for _, one := range [][2]string{{host, remote + "0"}, {"127.0.0.1:1", host}, {remote, "127.0.0.1:1"}, {"", ""}, {"[::1]:80", "[::1]:81"}} {
		if ownPeer(one[0], one[1]) {
			t.Errorf("%q: own", one)
		}
	}
}
