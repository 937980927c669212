//go:build !linux

package helper

// bindProcess does nothing: these kernels cannot limit mappings. The helper watches its own heap.
func bindProcess(string, int64) {}

func resident(int) int64 { return 0 }
