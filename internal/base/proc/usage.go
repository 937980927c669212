package proc

// Used says how much processes use together.
type Used struct {
	Processes int
	Memory    int64 // in bytes
}

// Sum adds up the values of the map that Usage returns.
func Sum(all map[int]Used) (sum Used) {
	for _, one := range all {
		sum.Processes += one.Processes
		sum.Memory += one.Memory
	}
	return sum
}
