package proc

// Used is what processes use.
type Used struct {
	Processes int
	Memory    int64 // in bytes
}

// Sum adds up what Usage returns.
func Sum(all map[int]Used) (sum Used) {
	for _, one := range all {
		sum.Processes += one.Processes
		sum.Memory += one.Memory
	}
	return sum
}
