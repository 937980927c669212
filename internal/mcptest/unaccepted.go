package mcptest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// Unaccepted sends the messages that contain Text to a server that never accepts the connection, except the first ones.
type Unaccepted struct {
	Text  string
	First atomic.Int32 // how many of these messages it still sends on; each later one makes it smaller too
}

func (u *Unaccepted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.GetBody == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	message, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(message), u.Text) || u.First.Add(-1) >= 0 {
		return http.DefaultTransport.RoundTrip(r)
	}
	never := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { // its context may outlive r
		<-r.Context().Done()
		return nil, r.Context().Err()
	}}
	return never.RoundTrip(r)
}
