package state_test

import (
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/mcptest/statetest"
)

// TestContracts: the implementations in memory do what the comments of the interfaces promise.
func TestContracts(t *testing.T) {
	t.Run("records", func(t *testing.T) {
		statetest.Records(t, func(*testing.T) (here, there state.Records) {
			r := state.NewRecords(300, 1<<20)
			return r, r
		})
	})
	secrets := []*state.Secret{state.NewSecret()}
	t.Run("sealed sessions", func(t *testing.T) {
		statetest.Sessions(t, func(*testing.T) (here, there state.Sessions[statetest.Record]) {
			r := state.NewRecords(1000, 1<<20)
			return state.NewSealed[statetest.Record](secrets, "test", r), state.NewSealed[statetest.Record](secrets, "test", r)
		})
	})
	t.Run("stored sessions", func(t *testing.T) {
		statetest.Sessions(t, func(*testing.T) (here, there state.Sessions[statetest.Record]) {
			r := state.NewRecords(1000, 1<<20)
			return state.NewStored[statetest.Record]("test", r), state.NewStored[statetest.Record]("test", r)
		})
	})
	t.Run("results", func(t *testing.T) {
		statetest.Results(t, func(_ *testing.T, most int) (here, there state.Results[statetest.Record]) {
			r := state.NewResults[statetest.Record](most, time.Hour)
			return r, r
		})
	})
	t.Run("once", func(t *testing.T) {
		statetest.Once(t, func(*testing.T) (here, there state.Once) {
			o := state.NewOnce("test", state.NewRecords(1000, 1<<20))
			return o, o
		})
	})
	t.Run("counters", func(t *testing.T) {
		statetest.Counters(t, 0, func(*testing.T) (here, there state.Counters) {
			c := state.NewCounters(1000)
			return c, c
		})
	})
}
