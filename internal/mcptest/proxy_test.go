package mcptest

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// lettersServer returns the address of a server that sends n letters on each connection after it has read a byte, and
// then echoes what it reads.
func lettersServer(t *testing.T, n int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				one := make([]byte, 1)
				if _, err := conn.Read(one); err != nil {
					return
				}
				message{fill: int64(n), tail: []byte("!")}.WriteTo(conn)
				io.Copy(conn, conn)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func dialProxy(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestProxy_Passes(t *testing.T) {
	NoLeaks(t)
	for _, mode := range []ProxyMode{ProxyPass, ProxyOneByte} {
		p := NewProxy(t, lettersServer(t, 1000))
		p.Set(mode)
		conn := dialProxy(t, p)
		conn.Write([]byte("?"))
		got := make([]byte, 1001)
		if _, err := io.ReadFull(conn, got); err != nil || got[1000] != '!' {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
		conn.(*net.TCPConn).CloseWrite()
		if n, err := conn.Read(got); n != 0 || err != io.EOF {
			t.Errorf("%s: the end is %d, %v", mode, n, err)
		}
		if p.Accepted() != 1 {
			t.Errorf("%d connections", p.Accepted())
		}
	}
}

func TestProxy_RefuseCutHalfOpen(t *testing.T) {
	NoLeaks(t)
	p := NewProxy(t, "http://"+lettersServer(t, 10)+"/x")
	open := dialProxy(t, p)
	open.Write([]byte("?"))
	buf := make([]byte, 11)
	if _, err := io.ReadFull(open, buf); err != nil {
		t.Fatal(err)
	}
	p.Set(ProxyRefuse)
	if refused, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come before Dial returns
		if _, err := refused.Read(buf); err == nil {
			t.Error("not refused")
		}
		refused.Close()
	}
	open.Write([]byte("still"))
	if _, err := io.ReadFull(open, buf[:5]); err != nil || string(buf[:5]) != "still" {
		t.Errorf("the open connection: %q, %v", buf[:5], err)
	}
	p.Set(ProxyHalfOpen)
	open.Write([]byte("lost"))
	open.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := open.Read(buf); !isTimeout(err) {
		t.Errorf("half open: %d, %v", n, err)
	}
	p.Set(ProxyPass)
	open.SetDeadline(time.Now().Add(patience))
	open.Write([]byte("new"))
	if n, err := io.ReadFull(open, buf[:3]); err != nil || string(buf[:3]) != "new" {
		t.Errorf("after half open: %q, %v", buf[:n], err)
	}
	p.Cut()
	if _, err := open.Read(buf); err == nil || isTimeout(err) {
		t.Errorf("after Cut: %v", err)
	}
}
