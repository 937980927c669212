package policy

import (
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// ConfirmOf says which calls of a server a user must confirm, according to the rules of a snapshot.
func ConfirmOf(snap *catalog.Snapshot, server string) conf.Confirm {
	if rules, ok := snap.Rules.(*Rules); ok {
		return rules.Servers[server].Confirm
	}
	return conf.ConfirmNone
}

// Asks reports whether the user must confirm a call of the tool t. If t is nil, the call is a request with a method that mcpx does
// not know. It counts as destructive, because it may do anything.
func Asks(c conf.Confirm, t *catalog.Tool) bool {
	return c == conf.ConfirmAll || c == conf.ConfirmDestructive && (t == nil || !t.Hints.IsReadOnly())
}
