package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/transport"
)

func refused(status int) error { return &transport.RefusedError{Status: status, Text: "no"} }

func closedWith(code int) error { return &transport.ClosedError{Code: code} }

// TestDialout_Pauses: the pauses between attempts double up to a minute, with a random part. After a connection that lasted for
// stableTime, they are short again.
func TestDialout_Pauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var lines []string
		var pauses []time.Duration
		ended := time.Now()
		attempts := 0
		d := &dialout{say: func(line string) { lines = append(lines, line) }}
		d.connect = func(context.Context) error {
			if attempts++; attempts > 1 {
				pauses = append(pauses, time.Since(ended))
			}
			switch attempts {
			case 10: // this connection lasts for stableTime
				time.Sleep(stableTime)
			case 12:
				cancel()
			}
			ended = time.Now()
			return errors.New("cut")
		}
		if err := d.run(ctx); err != nil {
			t.Fatal(err)
		}
		want := firstRedial
		for i, pause := range pauses {
			if i == 9 {
				want = firstRedial
			}
			if pause < want/2 || pause > want*3/2 {
				t.Errorf("pause %d is %v, want %v give or take a half", i, pause, want)
			}
			want = min(2*want, longRedial)
		}
		if slices.IsSorted(pauses[6:9]) && pauses[6] == pauses[8] {
			t.Error("the pauses are even")
		}
		if len(lines) != 12 || !strings.HasPrefix(lines[0], "cut; again in ") || lines[11] != "ended" {
			t.Errorf("%q", lines)
		}
	})
}

// TestDialout_Final: an error that would come again ends the command. A refused token and a replaced connection always do. The
// statuses 400, 403 and 404 do only before the first connection has worked.
func TestDialout_Final(t *testing.T) {
	for _, test := range []struct {
		err           error
		first, worked bool // whether it is final at the first attempt, and after a connection has worked
	}{
		{refused(401), true, true}, {closedWith(transport.CloseReplaced), true, true},
		{refused(400), true, false}, {refused(403), true, false}, {refused(404), true, false},
		{refused(409), false, false}, {refused(429), false, false}, {refused(502), false, false}, {refused(503), false, false},
		{closedWith(transport.ClosePolicy), false, false}, {closedWith(transport.CloseGoingAway), false, false}, {errors.New("cut"), false, false},
	} {
		for count, want := range []bool{test.first, test.worked} {
			if got := (&dialout{count: count}).final(test.err); got != want {
				t.Errorf("%v after %d connections: final is %v", test.err, count, got)
			}
		}
	}
}

// TestCheckDialAddress: the token is sent over TLS or to this machine only.
func TestCheckDialAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"wss://mcp.example.com/dial/x": true, "ws://127.0.0.1:80/dial/x": true, "ws://[::1]:80/dial/x": true, "ws://localhost/dial/x": true,
		"ws://example.com/dial/x": false, "ws://127.0.0.1.example.com/dial/x": false, "https://example.com/dial/x": false,
		"wss://example.com/dial/": false, "wss:///dial/x": false, "wss://example.com/x": false,
	} {
		if text := CheckDialAddress(address); (text == "") != ok {
			t.Error(fmt.Sprint(address, ": ", text))
		}
	}
}
