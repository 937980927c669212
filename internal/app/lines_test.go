package app

import "testing"

// TestAbout: lines of the text log and of the JSON log are about the server that they name, wherever in the line.
func TestAbout(t *testing.T) {
	for line, want := range map[string]bool{
		"level=INFO msg=connected server=fake era=modern\n":                    true,
		"level=INFO msg=\"stopped, as it was not used\" server=fake\n":         true,
		"level=INFO msg=\"stopped, as it was not used\" server=fake":           true,
		"level=INFO msg=connected server=fake2\n":                              false,
		"level=INFO msg=connected other_server=fake\n":                         false,
		`{"level":"INFO","msg":"stopped, as it was not used","server":"fake"}`: true,
		`{"level":"INFO","msg":"connected","server":"fake2"}`:                  false,
	} {
		text := []byte(line + "server")
		if got := About(text[:len(line)], "fake"); got != want || string(text) != line+"server" {
			t.Errorf("%q: %t, then %q", line, got, text)
		}
	}
}
