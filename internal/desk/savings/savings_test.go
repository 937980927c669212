package savings

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
)

// TestMain runs the test binary as one of several processes with the same folder, if the environment says so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SAVINGS_DIR"); dir != "" {
		count(dir, os.Getenv("SAVINGS_TIMES"))
		return
	}
	os.Exit(m.Run())
}

// noon is some day at noon, so that the tests do not depend on when and where they run.
var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)

// count saves one call after the other and prints each number once it is saved.
func count(dir, times string) {
	most, _ := strconv.Atoi(times)
	b := New(dir, slog.New(slog.DiscardHandler))
	for n := 1; n <= most; n++ {
		b.Add(noon, Key{"shop", "search", "client " + strconv.Itoa(os.Getpid())}, Figures{Calls: 1, Cut: 10})
		b.save()
		fmt.Println(n)
	}
	b.Close(time.Minute)
}

func process(t *testing.T, dir string, times int) (*exec.Cmd, io.Reader) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "SAVINGS_DIR="+dir, "SAVINGS_TIMES="+strconv.Itoa(times))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, out
}

func loaded(t *testing.T, dir, since string) []Day {
	t.Helper()
	days, err := Load(dir, since, "9999-12-31")
	if err != nil {
		t.Fatal(err)
	}
	return days
}

// TestBook_Processes: what several processes count at the same time is added up, and nothing is lost.
func TestBook_Processes(t *testing.T) {
	mcptest.Parallel(t)
	const processes, times = 3, 40
	dir := t.TempDir()
	var all []*exec.Cmd
	for range processes {
		c, out := process(t, dir, times)
		go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	days := loaded(t, dir, "")
	if len(days) != 1 || days[0].Tools["shop.search"] != (Figures{Calls: processes * times, Cut: 10 * processes * times}) || len(days[0].Clients) != processes {
		t.Errorf("%+v", days)
	}
}

// TestBook_Killed: a process that is killed while it saves loses nothing that was saved, leaves a file that can be read, and does
// not keep others from counting. What it leaves behind is deleted with the next day.
func TestBook_Killed(t *testing.T) {
	mcptest.Parallel(t)
	dir := t.TempDir()
	saved := int64(0)
	for range 3 {
		c, out := process(t, dir, 1_000_000)
		lines := bufio.NewScanner(out)
		n := int64(0)
		for lines.Scan() {
			if n++; n == 20 {
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = c.Wait() // it was killed
		saved += n
	}
	if days := loaded(t, dir, ""); len(days) != 1 || days[0].Servers["shop"].Calls < saved || days[0].Servers["shop"].Calls > saved+3 {
		t.Errorf("%d calls were saved, %+v", saved, days)
	}
	if err := os.WriteFile(filepath.Join(dir, ".2026-11-23.json.mcpx-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := New(dir, slog.New(slog.DiscardHandler))
	b.Add(noon.AddDate(0, 0, 1), Key{Server: "shop"}, Figures{Definitions: 1})
	b.Close(time.Minute)
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if days := loaded(t, dir, "2026-11-24"); len(days) != 1 || days[0].Servers["shop"].Definitions != 1 || len(left) > 0 || err != nil {
		t.Errorf("%+v, left %v, %v", days, left, err)
	}
}

// TestBook: each day has the same sums by server, by tool and by client. They are in the file some seconds later.
func TestBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := New(dir, slog.New(slog.DiscardHandler))
		night := noon.Add(12*time.Hour - time.Second)
		b.Add(night, Key{"shop", "search", "cursor"}, Figures{Calls: 1, Received: 100, Sent: 30, Compression: 20, Cut: 50})
		b.Add(night, Key{"shop", "", "cursor"}, Figures{Definitions: 900})
		b.Add(night, Key{"mcpx", "", "cursor"}, Figures{Sessions: 1, Definitions: -200})
		b.Add(night.Add(time.Second), Key{"shop", "search", " a\nb "}, Figures{Sent: 10, Cut: -10})
		if got := b.Servers()["shop"]; got != (Figures{Calls: 1, Received: 100, Sent: 40, Definitions: 900, Compression: 20, Cut: 40}) {
			t.Errorf("since the start %+v", got)
		}
		if days := loaded(t, dir, ""); len(days) != 0 {
			t.Errorf("at once %+v", days)
		}
		time.Sleep(saveAfter)
		synctest.Wait()
		days := loaded(t, dir, "")
		if len(days) != 2 || len(loaded(t, dir, "2026-11-24")) != 1 {
			t.Fatalf("%+v", days)
		}
		for _, day := range days {
			for _, part := range []map[string]Figures{day.Tools, day.Clients} {
				sum := Figures{}
				for _, f := range part {
					sum.Add(f)
				}
				if sum != day.total() {
					t.Errorf("%s: %+v, but by server %+v", day.Date, sum, day.total())
				}
			}
		}
		if d := days[0]; d.Tools["shop (definitions)"].Definitions != 900 || d.Tools["shop.search"].Cut != 50 || d.Clients["cursor"].Definitions != 700 {
			t.Errorf("%+v", d)
		}
		if d := days[1]; d.Clients["a b"].Cut != -10 {
			t.Errorf("%+v", d)
		}
		b.Add(noon, Key{Server: "shop"}, Figures{Definitions: 1})
		b.Close(time.Minute)
		b.Add(noon, Key{Server: "shop"}, Figures{Definitions: 1}) // after Close, so these figures are not saved
		total, rows := Sum(loaded(t, dir, ""), "client")
		if len(rows) != 3 || rows[0].Name != "cursor" || rows[1].Name != "(no name)" || rows[2].Name != "a b" || total.Definitions != 701 {
			t.Errorf("%+v, %+v", total, rows)
		}
	})
}

// TestBook_Bounds: however many names there are, a day has at most maxServers, maxTools and maxClients of them and [Other], and
// its sums are right.
func TestBook_Bounds(t *testing.T) {
	mcptest.Parallel(t)
	dir := t.TempDir()
	b := New(dir, slog.New(slog.DiscardHandler))
	const calls = 2 * maxPending
	for n := range calls {
		name := strconv.Itoa(n)
		b.Add(noon, Key{"server " + name, "tool", "client " + strings.Repeat(name, 100)}, Figures{Calls: 1})
	}
	b.Close(time.Minute)
	day := loaded(t, dir, "")[0]
	if len(day.Servers) > maxServers+1 || len(day.Tools) > maxTools+1 || len(day.Clients) > maxClients+1 || day.total().Calls != calls || day.Clients[Other].Calls < calls-3*maxClients {
		t.Errorf("%d servers, %d tools, %d clients, %+v", len(day.Servers), len(day.Tools), len(day.Clients), day.total())
	}
	info, err := os.Stat(filepath.Join(dir, "2026-11-23.json"))
	if err != nil || info.Size() > 100_000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if len(b.Servers()) > maxServers+1 {
		t.Errorf("%d servers in memory", len(b.Servers()))
	}
}

// TestBook_BoundsWhileFailing: as long as nothing can be written, the keys in memory are bounded, and no figures are lost.
func TestBook_BoundsWhileFailing(t *testing.T) {
	mcptest.Parallel(t)
	dir := filepath.Join(t.TempDir(), "savings")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file in place of the folder
		t.Fatal(err)
	}
	b := New(dir, slog.New(slog.DiscardHandler))
	old := make(map[entry]*Figures)
	for n := range maxPending {
		b.Add(noon, Key{Server: strconv.Itoa(n)}, Figures{Calls: 1})
		old[entry{20261123, Key{Server: "during the save " + strconv.Itoa(n)}}] = &Figures{Calls: 1}
	}
	b.keep(old, nil)
	var sum Figures
	for _, f := range b.pending {
		sum.Add(*f)
	}
	if len(b.pending) > maxPending+1 || sum.Calls != 2*maxPending {
		t.Errorf("%d keys, %d calls", len(b.pending), sum.Calls)
	}
	b.Close(time.Minute)
}

// TestBook_Faults: figures that cannot be written are kept until they can be written, and the failure is logged once. A damaged
// file counts as empty. Old files are deleted, also those of another config, which may be gone.
func TestBook_Faults(t *testing.T) {
	mcptest.Parallel(t)
	dir := filepath.Join(t.TempDir(), "savings")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file in place of the folder
		t.Fatal(err)
	}
	var lines bytes.Buffer
	b := New(dir, slog.New(slog.NewTextHandler(&lines, nil)))
	for range 3 {
		b.Add(noon, Key{Server: "shop"}, Figures{Calls: 1})
		b.save()
	}
	if n := strings.Count(lines.String(), "cannot be written"); n != 1 {
		t.Errorf("%d times in the log: %s", n, lines.String())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	oldest := noon.AddDate(0, 0, 1-KeptDays).Format(time.DateOnly)
	before := noon.AddDate(0, 0, -KeptDays).Format(time.DateOnly)
	for _, date := range []string{oldest, before, "2026-11-22", "not a date"} {
		if err := os.WriteFile(filepath.Join(dir, date+suffix), []byte("{damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(filepath.Dir(dir), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{oldest + suffix, before + suffix, before} {
		if err := os.WriteFile(filepath.Join(other, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.save()
	b.Add(noon.AddDate(0, 0, -1), Key{Server: "shop"}, Figures{Calls: 7})
	b.Close(time.Minute)
	if left, err := os.ReadDir(other); err != nil || len(left) != 2 || left[0].Name() != before || left[1].Name() != oldest+suffix {
		t.Errorf("of another config are left %v, %v", left, err)
	}
	got := map[string]int64{}
	for _, day := range loaded(t, dir, "") {
		got[day.Date] = day.Servers["shop"].Calls
	}
	if want := map[string]int64{oldest: 0, "2026-11-22": 7, "2026-11-23": 3}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if days, err := Load(filepath.Join(dir, "none"), "", "9999-12-31"); len(days) != 0 || err != nil {
		t.Errorf("without a folder: %v, %v", days, err)
	}
}

// TestChart: the chart is well-formed, nothing is outside of it, and one large figure does not make the others unreadable.
func TestChart(t *testing.T) {
	r := &Report{Encoding: "o200k_base", Since: "2026-11-01", Days: 30, By: "tool"}
	for i := range 30 {
		r.Rows = append(r.Rows, Row{fmt.Sprintf(`shop<&>"'%d`, i) + "\x00", Figures{Calls: int64(i), Definitions: 1000, Compression: int64(100 - i), Cut: int64(-i)}})
	}
	r.Rows[0].Cut = 304_900
	for _, row := range r.Rows {
		r.Total.Add(row.Figures)
	}
	decoder := xml.NewDecoder(bytes.NewReader(Chart(r)))
	var text strings.Builder
	width, bars := 0, 0
	for {
		next, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch next := next.(type) {
		case xml.CharData:
			text.Write(next)
		case xml.StartElement:
			of := func(name string) int {
				for _, a := range next.Attr {
					if a.Name.Local == name {
						n, _ := strconv.Atoi(a.Value)
						return n
					}
				}
				return 0
			}
			switch next.Name.Local {
			case "svg":
				width = of("width")
			case "rect":
				if bars++; of("x")+of("width") > width-80 { // to the right of the bar, there must be room for its number
					t.Errorf("a bar ends at %d of %d", of("x")+of("width"), width)
				}
			}
		}
	}
	for _, want := range []string{"definitions", "compression", "behind a handle", "304,900", "11 others", `shop<&>"'0`, "all", "o200k_base"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	if bars < 40 {
		t.Errorf("%d bars", bars)
	}
	days := &Report{By: "day", Rows: []Row{{"2026-11-20", Figures{Cut: 1}}, {"2026-11-21", Figures{Cut: 2}}, {"2026-11-22", Figures{Cut: 4}}}}
	if got := days.Fewer(2); len(got) != 2 || got[0].Name != "2 days before" || got[0].Cut != 3 || got[1].Cut != 4 {
		t.Errorf("%+v", got)
	}
	if empty := Chart(&Report{By: "server"}); !bytes.Contains(empty, []byte("</svg>")) {
		t.Errorf("%s", empty)
	}
}
