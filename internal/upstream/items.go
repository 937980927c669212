package upstream

import (
	"context"
	"slices"
	"time"

	"mcpx/internal/base/catalog"
)

// itemsPatience bounds the time for reading all lists other than the tools. The time is short because mcpx does not
// notice a change of the tools while it reads other lists.
const itemsPatience = 10 * time.Second

// adoptOffers stores what the server offers in a fresh session: which lists it has besides tools. If the server does not
// offer a list any more, adoptOffers clears that list.
func (l *Lists) adoptOffers(offers catalog.Offers) {
	l.Offers = offers
	kinds := offers.Kinds()
	gone := make(map[catalog.Kind][]catalog.Item)
	for _, kind := range append(catalog.ItemKinds[:], catalog.Skills) {
		if !slices.Contains(kinds, kind) {
			gone[kind] = nil
		}
	}
	tried := l.ListTried
	l.adoptItems(gone, len(kinds) == 0)
	l.ListTried = tried || len(kinds) == 0
}

// listItems reads the lists in due that the server offers. If it cannot read a list, the old list stays in use. If it can
// read only the first pages, these replace the old list. In both cases mcpx tries again later. The server stays ready, since
// most clients use only tools.
func (u *Upstream) listItems(outer context.Context, s *session, due map[catalog.Kind]bool) {
	kinds := slices.DeleteFunc(s.offers.Kinds(), func(kind catalog.Kind) bool { return !due[kind] })
	if len(kinds) == 0 || u.spec.Catalogue.Shared != nil {
		return
	}
	ctx, cancel := context.WithTimeout(outer, min(itemsPatience, u.spec.Timeouts.Connect))
	defer cancel()
	fresh := make(map[catalog.Kind][]catalog.Item)
	for _, kind := range kinds {
		all, missing, err := s.list(ctx, kind, false)
		if s.link.Life().Cause() != nil || outer.Err() != nil { // the session, or mcpx, ends
			return
		}
		if err != nil || missing != nil {
			s.relisting.later(kind)
		}
		if err != nil {
			u.spec.Logger.Warn("listing "+string(kind), "err", u.spec.Secrets.Line(err.Error(), 300))
			continue
		}
		items, faults := catalog.DecodeItems(kind, all.Items)
		for _, fault := range slices.Concat(all.Faults, faults) {
			u.spec.Logger.Warn("not listed", "fault", u.spec.Secrets.Line(fault, 300))
		}
		fresh[kind], s.relisting.read[kind] = items, true
	}
	all := !slices.ContainsFunc(s.offers.Kinds(), func(kind catalog.Kind) bool { return !s.relisting.read[kind] })
	u.update(func(st *Status) { st.adoptItems(fresh, all) })
}

// adoptItems replaces the lists whose kinds are in fresh: they were read again, or the server no longer offers them. all means that
// at least a part of each offered list has been read; adoptItems then sets Listed. If the new lists equal the old ones, Items stays
// the same pointer, so that others can notice a change by comparing pointers.
func (l *Lists) adoptItems(fresh map[catalog.Kind][]catalog.Item, all bool) {
	next := catalog.Items{}
	if l.Items != nil {
		next = *l.Items
	}
	changed := l.Items == nil
	for kind, into := range map[catalog.Kind]*[]catalog.Item{
		catalog.Resources: &next.Resources, catalog.ResourceTemplates: &next.Templates,
		catalog.Prompts: &next.Prompts, catalog.Skills: &next.Skills,
	} {
		if items, read := fresh[kind]; read && !catalog.EqualItems(*into, items) {
			*into, changed = items, true
		}
	}
	if changed && len(fresh) > 0 {
		l.Items = &next
	}
	l.ListTried, l.Listed = true, l.Listed || all
}
