package sanitize

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"read_text_file", "read_media_file", "write_file", "list_directory", "create_issue", "get-weather", "search", "id", "Ünïcode_tool"}
	tests := []struct {
		name string
		want []string
	}{
		{"readTextFile", []string{"read_text_file"}},
		{"READ-TEXT-FILE", []string{"read_text_file"}},
		{"read_text_flie", []string{"read_text_file"}},
		{"get_weather", []string{"get-weather"}},
		{"weather_get", []string{"get-weather"}},
		{"issue_create", []string{"create_issue"}},
		{"write_files", []string{"write_file"}},
		{"file", []string{"read_text_file", "read_media_file", "write_file"}},
		{"searhc", []string{"search"}},
		{"di", []string{"id"}},
		{"xyz", nil},
		{"", nil},
		{"___", nil},
		{strings.Repeat("long", 1000), nil},
		{"ünïcode tool", []string{"Ünïcode_tool"}},
	}
	for _, tt := range tests {
		got := Nearest(tt.name, known)
		if !slices.Equal(got, tt.want) && !(len(got) == 0 && len(tt.want) == 0) {
			t.Errorf("Nearest(%.30q) = %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := Nearest("a", []string{strings.Repeat("a", 5000), "b"}); len(got) > 1 {
		t.Errorf("got %d names", len(got))
	}
}

func TestClosest(t *testing.T) {
	known := []string{"write_file", "read_file", "list", strings.Repeat("x", 300), "read"}
	for _, tt := range []struct {
		name string
		n    int
		want []string
	}{
		{"reader", 3, []string{"read", "read_file", "list"}},
		{"reader", 5, known},
		{"reader", 9, known},
		{strings.Repeat("y", 300), 2, known[:2]},
		{"", 1, []string{"list"}},
	} {
		if got := Closest(tt.name, known, tt.n); !slices.Equal(got, tt.want) {
			t.Errorf("Closest(%.20q, %d) = %.100q, want %.100q", tt.name, tt.n, got, tt.want)
		}
	}
	if got := Closest("a", nil, 3); len(got) != 0 {
		t.Errorf("got %q of none", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := Distance(tt.a, tt.b, 10); got != tt.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
	if got := Distance("a", strings.Repeat("b", 300), 1000); got <= 1000 {
		t.Errorf("a long name: %d", got)
	}
}
