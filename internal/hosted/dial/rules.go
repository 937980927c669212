package dial

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/policy"
	"mcpx/internal/transport"
)

// servedName returns the name under which clients see a server. If only the owner may use the server ([conf.DialSelf]), the name
// has a suffix that depends on the owner, so that servers of two principals never have the same name.
func servedName(name, owner, audience string) string {
	if audience != conf.DialSelf {
		return name
	}
	sum := sha256.Sum256([]byte(owner))
	return name + "-" + hex.EncodeToString(sum[:4])
}

// rule returns the rule of the config that allows a principal to dial in under a name; nil if no rule does.
func (h *Hub) rule(dial *conf.Dial, p *caller.Principal, name string) *conf.DialRule {
	if h.options.Barred != nil && h.options.Barred(p) {
		return nil
	}
	return policy.MayDial(dial.Allow, p, name)
}

// dialledAs says how a server is served, and who sees it.
func dialledAs(rule *conf.DialRule, p *caller.Principal, name string) policy.Dialled {
	as := policy.Dialled{Server: servedName(name, p.Key(), rule.For), Owner: p.Key(), For: rule.For}
	if rule.For == conf.DialGroup && p != nil {
		for _, group := range slices.Sorted(slices.Values(p.Groups)) {
			if rule.Groups == nil || slices.Contains(rule.Groups, group) {
				as.Groups = append(as.Groups, group)
			}
		}
	}
	return as
}

// allowed reports whether the current config lets a principal dial in as name, and has the server served like this.
func (h *Hub) allowed(by *caller.Principal, name string, as policy.Dialled) bool {
	dial := h.options.Current()
	if dial == nil || h.options.Taken(name) || h.options.Taken(as.Server) {
		return false
	}
	rule := h.rule(dial, by, name)
	return rule != nil && reflect.DeepEqual(dialledAs(rule, by, name), as)
}

// Recheck removes the servers that the current config no longer allows. It closes their connections to this replica. It does not
// call [Options.Changed], because the caller of Recheck applies the change. Servers at other replicas that the config allows again
// are added a little later, by the goroutine of Share.
func (h *Hub) Recheck() {
	h.mu.Lock()
	var open []*conn
	for _, s := range h.slots {
		if h.allowed(s.By, s.Name, s.Dialled) {
			continue
		}
		h.remove(s)
		if s.live != nil {
			open = append(open, s.live)
		}
	}
	h.mu.Unlock()
	closeAll(open, transport.ClosePolicy, "the config does not allow this name any more")
	h.watch()()
}
