package mcptest

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// lettersServer answers each connection with letters once it has read a byte,
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

func TestProxy_Limits(t *testing.T) {
	NoLeaks(t)
	for _, tc := range []struct {
		name string
		set  func(*Proxy)
		ok   func(error) bool
	}{
		{"reset", func(p *Proxy) { p.ResetAfter(500) }, func(err error) bool { return err != nil && err != io.EOF && !isTimeout(err) }},
		{"close", func(p *Proxy) { p.CloseAfter(500) }, func(err error) bool { return err == nil }},
		{"stall", func(p *Proxy) { p.StallAfter(500) }, isTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := NewProxy(t, lettersServer(t, 100000))
			tc.set(p)
			conn := dialProxy(t, p)
			conn.Write([]byte("?"))
			// The first bytes come before the fault; a reset may overtake what the
			// client has not read yet, so only the limit is exact.
			if tc.name == "stall" {
				conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			}
			got, err := io.ReadAll(conn)
			if len(got) > 500 || tc.name != "reset" && len(got) != 500 || !tc.ok(err) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if tc.name == "stall" {
				p.Set(ProxyPass)
				conn.SetReadDeadline(time.Now().Add(patience))
				if n, err := io.CopyN(io.Discard, conn, 100001-500); err != nil {
					t.Errorf("after the stall: %d bytes, %v", n, err)
				}
			}
		})
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
	if refused, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come as early as that
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

func TestProxy_HTTP(t *testing.T) {
	NoLeaks(t)
	h := Spec{NoSession: true}.HTTP(t)
	p := NewProxy(t, h.URL)
	c := newWebClient(t, p.URL(h.URL))
	if _, _, said, err := c.post(callMessage(1, "echo", `{"text":"hi"}`)); err != nil || textOf(t, decode(t, said[0])) != "hi" {
		t.Errorf("%q, %v", said, err)
	}
	p.Set(ProxyHalfOpen)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.do(ctx, "POST", callMessage(2, "echo", `{"text":"hi"}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("half open: %v", err)
	}
}
