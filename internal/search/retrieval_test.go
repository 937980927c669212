package search

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
)

type toolID struct{ Server, Tool string }

type task struct {
	ID, Query, Kind string
	Relevant        []struct {
		toolID
		Alt []toolID
	}
}

// heldOut reports whether a task is in the held-out half. The constants and tables were made by looking only at
// failures in the other half.
func (t *task) heldOut() bool {
	h := fnv.New32a()
	h.Write([]byte(t.ID))
	return h.Sum32()>>8&1 == 1
}

func loadRetrieval(t *testing.T) (*catalog.Snapshot, []task) {
	snap, tasks, ok := readRetrieval(t)
	if !ok {
		t.Skip("MCPX_RETRIEVAL is not set: no folder with catalogue.json and tasks.jsonl to measure with")
	}
	return snap, tasks
}

// readRetrieval reads the catalogue and the tasks from the folder that MCPX_RETRIEVAL names; ok is false if it is
// not set.
func readRetrieval(tb testing.TB) (snap *catalog.Snapshot, tasks []task, ok bool) {
	dir := os.Getenv("MCPX_RETRIEVAL")
	if dir == "" {
		return nil, nil, false
	}
	data, err := os.ReadFile(filepath.Join(dir, "catalogue.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var in []struct {
		Server, Title, Description string
		Tools                      []catalog.Tool
	}
	if err := json.Unmarshal(data, &in); err != nil {
		tb.Fatal(err)
	}
	servers := make([]catalog.Server, len(in))
	for i, s := range in {
		servers[i] = catalog.Server{Name: s.Server, Title: s.Title, Instructions: s.Description, Tools: s.Tools}
	}
	f, err := os.Open(filepath.Join(dir, "tasks.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var t task
		if err := d.Decode(&t); err != nil {
			tb.Fatal(err)
		}
		tasks = append(tasks, t)
	}
	return catalog.NewSnapshot(servers), tasks, true
}

// measure has the sums of the figures for the quality of the ranking (recall in the first 1, 5 and 10 hits, and NDCG) over n
// tasks.
type measure struct {
	n                 int
	r1, r5, r10, ndcg float64
}

func (m *measure) add(t *task, hits []Hit) {
	rank := make([]int, len(t.Relevant))
	for pos, h := range hits {
		for i, r := range t.Relevant {
			id := toolID{h.Server, h.Tool}
			if rank[i] == 0 && (id == r.toolID || slices.Contains(r.Alt, id)) {
				rank[i] = pos + 1
			}
		}
	}
	at := func(k int) float64 {
		n := 0
		for _, r := range rank {
			if r > 0 && r <= k {
				n++
			}
		}
		return float64(n) / float64(len(rank))
	}
	var dcg, ideal float64
	for i, r := range rank {
		if r > 0 && r <= 10 {
			dcg += 1 / math.Log2(float64(r)+1)
		}
		if i < 10 {
			ideal += 1 / math.Log2(float64(i)+2)
		}
	}
	m.n++
	m.r1 += at(1)
	m.r5 += at(5)
	m.r10 += at(10)
	m.ndcg += dcg / ideal
}

func (m *measure) String() string {
	n := float64(max(m.n, 1))
	return fmt.Sprintf("n=%-4d R@1 %.3f  R@5 %.3f  R@10 %.3f  nDCG@10 %.3f", m.n, m.r1/n, m.r5/n, m.r10/n, m.ndcg/n)
}

// evaluate ranks every task, and sums the figures by the kind of the task and by its half (see heldOut).
func evaluate(x *Index, tasks []task) map[string]*measure {
	sums := map[string]*measure{}
	for i := range tasks {
		t := &tasks[i]
		hits := x.Search(t.Query, Options{Limit: 100})
		half := "tune"
		if t.heldOut() {
			half = "held out"
		}
		for _, name := range []string{"all", half, t.Kind, half + " " + t.Kind} {
			if sums[name] == nil {
				sums[name] = &measure{}
			}
			sums[name].add(t, hits)
		}
	}
	return sums
}

// TestRetrieval measures the ranking on public tasks, if they are there: MCPX_RETRIEVAL is a folder with
// catalogue.json and tasks.jsonl. If MCPX_RETRIEVAL_RANKED is set, it also writes the rankings to that file, for
// an external scorer.
func TestRetrieval(t *testing.T) {
	snap, tasks := loadRetrieval(t)
	x := New(snap)
	sums := evaluate(x, tasks)
	names := make([]string, 0, len(sums))
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("%-22s %s", name, sums[name])
	}
	bounds := map[string]measure{"all": {r1: 0.43, r5: 0.66, ndcg: 0.65}, "held out": {r1: 0.35, r5: 0.61, ndcg: 0.58}}
	for name, least := range bounds {
		got, n := sums[name], float64(sums[name].n)
		if got.r1 < least.r1*n || got.r5 < least.r5*n || got.ndcg < least.ndcg*n {
			t.Errorf("%s: %s, want R@1 %.2f, R@5 %.2f and nDCG@10 %.2f at least", name, got, least.r1, least.r5, least.ndcg)
		}
	}
	if file := os.Getenv("MCPX_RETRIEVAL_RANKED"); file != "" {
		writeRanked(t, x, tasks, file)
	}
}

// writeRanked writes the rankings in the format of the external scorer (see TestRetrieval).
func writeRanked(t *testing.T, x *Index, tasks []task, file string) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	for i := range tasks {
		type ref struct {
			Server string `json:"server"`
			Tool   string `json:"tool"`
		}
		line := struct {
			ID     string `json:"id"`
			Ranked []ref  `json:"ranked"`
		}{ID: tasks[i].ID}
		for _, h := range x.Search(tasks[i].Query, Options{Limit: 100}) {
			line.Ranked = append(line.Ranked, ref{h.Server, h.Tool})
		}
		if err := enc.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
