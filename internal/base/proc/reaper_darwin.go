package proc

func nameReaper() {}

func DropFilePages() {}

// killFound does nothing: on darwin only processes of the groups are killed.
func killFound(map[int]bool, string) bool { return false }

// adoptsOrphans returns false: on darwin only launchd adopts orphans.
func adoptsOrphans() bool { return false }

type sweeper struct{}

func newSweeper(*Reaper) *sweeper { return nil }

func (s *sweeper) stop() {}
