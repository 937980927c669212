package proc

func nameReaper() {}

// DropFilePages does nothing here.
func DropFilePages() {}

// killFound has nothing to add to the signals to the groups.
func killFound(map[int]bool, string) bool { return false }

// adoptsOrphans: only launchd gets orphans on darwin.
func adoptsOrphans() bool { return false }

// sweeper is never made on darwin.
type sweeper struct{}

func newSweeper(*Reaper) *sweeper { return nil }

func (s *sweeper) stop() {}
