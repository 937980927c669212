package mcptest

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// Unaccepted imitates a server that accepts no connection for some messages: those that contain Text, after the first few. All
// other messages are sent as usual.
type Unaccepted struct {
	Text  string
	First atomic.Int32 // how many messages with Text are still sent as usual; each message with Text decrements it
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
	never := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { // this context may outlive r
		<-r.Context().Done()
		return nil, r.Context().Err()
	}}
	return never.RoundTrip(r)
}
