package policy

import "mcpx/internal/base/catalog"

// Confirm says which calls a user must confirm. A larger one asks about more.
type Confirm uint8

// The values of [Confirm].
const (
	ConfirmNone        Confirm = iota
	ConfirmDestructive         // of tools that are not read-only
	ConfirmAll
)

// ConfirmOf is the Confirm of a server by the rules that came with a snapshot.
func ConfirmOf(snap *catalog.Snapshot, server string) Confirm {
	if rules, ok := snap.Rules.(*Rules); ok {
		return rules.Servers[server].Confirm
	}
	return ConfirmNone
}

// Asks reports whether a user must confirm a call of the tool; nil is a
// method that mcpx does not know, which may do anything.
func (c Confirm) Asks(t *catalog.Tool) bool {
	return c == ConfirmAll || c == ConfirmDestructive && (t == nil || !t.Hints.IsReadOnly())
}
