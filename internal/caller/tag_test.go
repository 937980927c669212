package caller

import (
	"testing"

	"mcpx/internal/base/state"
)

func TestTags(t *testing.T) {
	alice, bob := &Principal{ID: "a"}, &Principal{ID: "b"}
	secret := []*state.Secret{state.NewSecret()}
	tags := NewTags(secret, "a test")
	tag := tags.Of(alice, "x", "y")
	if len(tag) != tagLen || !tags.Is(tag, alice, "x", "y") || tags.Of(alice, "x", "y") != tag {
		t.Errorf("got %q", tag)
	}
	for what, same := range map[string]bool{
		"another's": tags.Is(tag, bob, "x", "y"), "nobody's": tags.Is(tag, nil, "x", "y"), "other parts": tags.Is(tag, alice, "xy"), "the parts elsewhere": tags.Is(tag, alice, "x", "", "y"),
		"in another order": tags.Is(tag, alice, "y", "x"), "shorter": tags.Is(tag[1:], alice, "x", "y"), "none": tags.Is("", alice, "x", "y"), "of another process": NewTags(nil, "a test").Is(tag, alice, "x", "y"),
		"for another purpose":       NewTags(secret, "another test").Is(tag, alice, "x", "y"),
		"with the principal inside": tags.Is(tags.Of(nil, "a", "x"), alice, "x"),
	} {
		if same {
			t.Errorf("the tag counts: %s", what)
		}
	}
	newer := NewTags(append([]*state.Secret{state.NewSecret()}, secret...), "a test")
	if !NewTags(secret, "a test").Is(tag, alice, "x", "y") || !newer.Is(tag, alice, "x", "y") {
		t.Error("another process with the same secret does not know the tag")
	}
	if newer.Of(alice, "x", "y") == tag {
		t.Error("the first secret does not make the tag")
	}
}
