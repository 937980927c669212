package plain

import "testing"

func TestRepeats(t *testing.T) {
	nothing := []string{"the", "of", "parameter"}
	for _, c := range []struct {
		text, name string
		want       bool
	}{
		{"username parameter", "username", true},
		{"The ID of the base", "baseId", true},
		{"Profile uuid parameter", "profileUuid", true},
		{"parkedDomain parameter", "parkedDomain", true},
		{"Tags", "tag", true},
		{"WHOIS details", "whois_details", true},
		{"The ID of the parent base", "baseId", false},
		{"Repository name", "repo", false},
		{"GitHub", "github", true},
		{"", "x", true},
	} {
		if got := Repeats(c.text, c.name, nothing); got != c.want {
			t.Errorf("Repeats(%q, %q) = %v", c.text, c.name, got)
		}
	}
}
