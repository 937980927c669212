package memory

import (
	"testing"
	"testing/fstest"
)

func TestContainer(t *testing.T) {
	const mib = "536870912\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"none", nil, 0},
		{"version 2", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": mib}, 512 << 20},
		{"version 2, no limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		{"version 2, the outer one is lower", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": mib}, 512 << 20},
		{"version 2, the path is the host's", map[string]string{"proc/self/cgroup": "0::/kubepods/x\n", "sys/fs/cgroup/memory.max": mib}, 512 << 20},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpu:/x\n4:memory:/x\n0::/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": mib}, 512 << 20},
		{"version 1, no limit", map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range tt.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := containerIn(root); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 3 << 20: 400, 6 << 20: 200, 12 << 20: 100, 1 << 30: 100} {
		if got := percentOf(live); got != want {
			t.Errorf("%d MiB: got %d, want %d", live>>20, got, want)
		}
	}
}
