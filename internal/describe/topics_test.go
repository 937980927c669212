package describe

import (
	"fmt"
	"strings"
	"testing"
)

// TestTopics_LeftOut: tools of a topic that is left out can still belong to a later one.
func TestTopics_LeftOut(t *testing.T) {
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprintf("get_issue_%d", i))
	}
	for i := range 6 {
		names = append(names, fmt.Sprintf("get_issue_branch_%d", i))
	}
	for i := range 12 {
		names = append(names, "get_q"+string(rune('a'+i)))
	}
	names = append(names, "get_branch_wiki", "get_wiki") // only the first has no issue, so branch is left out
	var list []string
	for _, topic := range topicsOf("s", names) {
		list = append(list, fmt.Sprintf("%s %d", topic.text, len(topic.tools)))
	}
	if want := "issue 10, wiki 2"; strings.Join(list, ", ") != want {
		t.Errorf("got %q, want %q", list, want)
	}
}
