package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/mcptest"
)

// TestPermissions: a user of NATS who may use only the subjects that docs/replicas.md names can do everything, also read a bucket
// that is so large that NATS waits for its reader.
func TestPermissions(t *testing.T) {
	mcptest.NoLeaks(t)
	page, err := os.ReadFile("../../../docs/replicas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sentence, _ := strings.Cut(string(page), "NATS needs the subjects")
	sentence, _, _ = strings.Cut(sentence, ":")
	var may []string
	for _, subject := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(sentence, -1) {
		may = append(may, strings.ReplaceAll(subject[1], "BUCKET", "test"))
	}
	allow := fmt.Sprintf(`{ allow: ["%s"] }`, strings.Join(may, `", "`))
	n := mcptest.StartNATS(t, `authorization { users: [ { user: mcpx, password: secret, permissions: { publish: `+allow+`, subscribe: `+allow+` } } ] }`)
	url := strings.Replace(n.URL, "://", "://mcpx:secret@", 1)
	var refused atomic.Pointer[string] // a log line about a permission
	log := slog.New(slog.NewTextHandler(writer(func(line []byte) {
		if text := string(line); strings.Contains(text, "ermission") {
			refused.Store(&text)
		}
	}), nil))
	var all []*Cluster
	value := bytes.Repeat([]byte("x"), 4<<10)
	for _, name := range []string{"a", "b"} {
		c, err := Join(t.Context(), Options{
			URLs: []string{url}, Keys: []*state.Secret{secret}, Name: name, Bucket: "test", Log: log,
		})
		if err != nil {
			t.Fatalf("%s: %v with %v", name, err, may)
		}
		t.Cleanup(c.Close)
		all = append(all, c)
		for i := range 800 {
			err := c.Records().Change(t.Context(), fmt.Sprint(name, i), func([]byte) ([]byte, time.Time, error) { return value, time.Now().Add(time.Hour), nil })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	meet(t, all...)
	all[1].Answer("echo", echo)
	if got, err := asked(t, all[0], all[1], "echo", value); err != nil || !bytes.Equal(got, value) {
		t.Errorf("an exchange: %d bytes, %v", len(got), err)
	}
	for _, key := range []string{"a0", "a799", "b0", "b799"} {
		for _, c := range all {
			mcptest.WaitFor(t, key+" at "+c.name, wait, func() bool { _, err := c.Records().Get(key); return err == nil })
		}
	}
	for _, c := range all {
		c.Close()
	}
	if line := refused.Load(); line != nil {
		t.Errorf("with %v: %s", may, *line)
	}
}

// writer is an io.Writer that calls the func with each line of a log, also after the test has read what it needs.
type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}
