package policy

import (
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// Confirm says which calls a user must confirm.
type Confirm = conf.Confirm

// The values of [Confirm].
const (
	ConfirmNone        = conf.ConfirmNone
	ConfirmDestructive = conf.ConfirmDestructive
	ConfirmAll         = conf.ConfirmAll
)

// ConfirmOf returns the Confirm of a server in a snapshot's rules.
func ConfirmOf(snap *catalog.Snapshot, server string) Confirm {
	if rules, ok := snap.Rules.(*Rules); ok {
		return rules.Servers[server].Confirm
	}
	return ConfirmNone
}

// Asks reports whether the user must confirm a call of the tool. A nil tool means a method that mcpx does not know. Such a method
// may do anything.
func Asks(c Confirm, t *catalog.Tool) bool {
	return c == ConfirmAll || c == ConfirmDestructive && (t == nil || !t.Hints.IsReadOnly())
}
