// Command gatewaybench compares MCP gateways: it installs them at pinned versions, starts the same servers behind each, and
// writes a report.
//
//	go run ./tools/gatewaybench [--quick] [--only PEER,…] [--figure NAME,…] [--against REPORT.json]
//
// It runs on Linux, because it reads memory and CPU time from /proc. It must be started in a folder of this repository, and
// needs go, node with npm, and python3 with venv. Peers are installed below the user's cache. docs/benchmark.md says what is
// measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mcpx/internal/base/proc"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gatewaybench: ")
	roles()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// roles is for processes in which this executable has started itself as a server. In such a process, roles does the work and does
// not return. Otherwise it does nothing.
func roles() {
	if len(os.Args) < 3 || os.Args[1] != "serve" {
		return
	}
	address := ""
	if len(os.Args) > 3 {
		address = os.Args[3]
	}
	if err := serve(os.Args[2], address); err != nil {
		log.Fatal(err)
	}
	os.Exit(0)
}

// options are the values of the flags.
type options struct {
	quick           bool
	only, figures   string
	out, against    string
	show, docs      string
	from            string
	rounds          int
	limit           time.Duration
	module, tempDir string
	cache           string
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("gatewaybench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "fewer and shorter rounds: three minutes at most")
	flags.StringVar(&o.only, "only", "", "compare these peers and direct, with commas between: "+peerNames(allPeers()))
	flags.StringVar(&o.figures, "figure", "", "measure these figures only, with commas between: "+figureNames())
	flags.StringVar(&o.out, "out", "", "the folder of the report; without it one below the user's cache, named after the time")
	flags.StringVar(&o.against, "against", "", "the report.json of an earlier run: say which figures agree with it within their noise")
	flags.StringVar(&o.docs, "docs", "", "put the tables into this document too, such as docs/benchmark.md")
	flags.StringVar(&o.from, "from", "", "measure nothing, and write the report.json of an earlier run again, or of several with "+
		"commas between")
	flags.StringVar(&o.show, "show", "", "measure nothing, and print what a model sees of this peer")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each figure that varies; 0: 5, or 2 with --quick")
	flags.DurationVar(&o.limit, "limit", 0, "the time of the run after the installation; 0: 30 minutes, or 3 with --quick")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.limit == 0 {
		o.limit = 30 * time.Minute
		if o.quick {
			o.limit = 3 * time.Minute
		}
	}
	if o.rounds == 0 {
		o.rounds = 5
		if o.quick {
			o.rounds = 2
		}
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	if o.show != "" {
		return b.show(o.show)
	}
	if o.from != "" {
		return b.rewrite(o.from)
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil { // fails here if out cannot be written, and not after all is measured
		return err
	}
	b.measure()
	return b.write()
}

// bench is one run of the command.
type bench struct {
	options
	ctx       context.Context
	self      string // path of this executable
	temp      string // folder with the homes of the gateways; removed at the end
	peers     []*peer
	installed map[string]string // folder of each installed peer, by its name
	figures   []*figure
	reaper    *proc.Reaper
	began     time.Time
	load      string // load average of the machine at the beginning
	cells     []*cell
}

func newBench(ctx context.Context, o options) (b *bench, err error) {
	b = &bench{options: o, ctx: ctx, installed: map[string]string{}, reaper: proc.NewReaper(), began: time.Now()}
	if b.figures, err = pick(allFigures(), o.figures, func(f *figure) string { return f.name }); err != nil {
		return nil, err
	}
	if b.peers, err = pick(allPeers(), o.only, func(p *peer) string { return p.name }); err != nil {
		return nil, err
	}
	if o.only != "" && !slices.ContainsFunc(b.peers, func(p *peer) bool { return p.name == "direct" }) {
		b.peers = append([]*peer{direct()}, b.peers...)
	}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.module == "" {
		gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
		if err != nil {
			return nil, fmt.Errorf("finding the module: %w", err)
		}
		b.module = filepath.Dir(strings.TrimSpace(string(gomod)))
	}
	if b.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		b.cache = filepath.Join(cache, "mcpx-gatewaybench")
	}
	if b.out == "" {
		b.out = filepath.Join(b.cache, "reports", b.began.Format("2006-01-02-150405"))
	}
	if b.temp, err = os.MkdirTemp(b.tempDir, "gatewaybench-"); err != nil {
		return nil, err
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		b.load, _, _ = strings.Cut(string(data), " ")
	}
	return b, nil
}

// pick returns the elements whose names are in list, which separates the names with commas. If list is empty, it returns all
// elements. A name that no element has is an error.
func pick[T any](elements []T, list string, name func(T) string) ([]T, error) {
	if list == "" {
		return elements, nil
	}
	wanted := strings.Split(list, ",")
	chosen := slices.DeleteFunc(slices.Clone(elements), func(one T) bool { return !slices.Contains(wanted, name(one)) })
	if len(chosen) != len(wanted) {
		var names []string
		for _, one := range elements {
			names = append(names, name(one))
		}
		return nil, fmt.Errorf("one of %q is unknown; there are %s", wanted, strings.Join(names, ", "))
	}
	return chosen, nil
}

func (b *bench) close() {
	_ = os.RemoveAll(b.temp)
	_ = b.reaper.Close()
}

// say prints a line about the progress, with the seconds since the beginning of the installation or of the measurements.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// measure installs the peers and measures all figures. If the time of --limit is over before a peer has its turn in a figure, the
// peer gets the state noTime in that figure.
func (b *bench) measure() {
	b.install()
	b.began = time.Now() // the limit does not include the installation
	whole := b.ctx
	ctx, cancel := context.WithTimeout(whole, b.limit)
	defer cancel()
	b.ctx = ctx
	for _, f := range b.figures {
		b.say("%s", f.name)
		f.run(b, f)
	}
	rounds := map[string]int{}
	for _, c := range b.cells {
		c.settle()
		rounds[c.Figure+c.Transport] = max(rounds[c.Figure+c.Transport], len(c.Values))
	}
	for _, c := range b.cells {
		c.Rounds = rounds[c.Figure+c.Transport]
	}
}

// install installs the peers. A peer that cannot be installed fails in every figure.
func (b *bench) install() {
	for _, p := range b.peers {
		b.say("install %s %s", p.name, p.version)
		ctx, cancel := context.WithTimeout(b.ctx, 10*time.Minute)
		dir, err := install(ctx, p, b.cache, b.module)
		cancel()
		if err != nil {
			l := b.logFor("install", p, "")
			l.note("%v", err)
			_ = l.file.Close()
			b.say("%s is not there: %s", p.name, clip(err.Error(), 200))
			continue
		}
		b.installed[p.name] = dir
	}
}

// logFor opens the log of a peer in a figure. The report refers to the log by its name.
func (b *bench) logFor(figure string, p *peer, transport string) *logFile {
	path := filepath.Join(b.out, logName(figure, p, transport))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	}
	if err != nil {
		b.say("%v", err)
		return &logFile{}
	}
	return &logFile{file: file, left: 1 << 20}
}

func logName(figure string, p *peer, transport string) string {
	name := strings.NewReplacer(" ", "-", "(", "", ")", "").Replace(strings.Trim(figure+"-"+p.name+"-"+transport, "-"))
	return filepath.Join("logs", name+".log")
}

// show prints what a model sees of a peer in front of two servers: the peer's tools, the answers when the model learns a tool and
// searches for tools, and the answer to a call of echo.
func (b *bench) show(name string) error {
	chosen, err := pick(allPeers(), name, func(p *peer) string { return p.name })
	if err != nil {
		return err
	}
	b.peers = chosen
	b.install()
	p, l := chosen[0], &logFile{file: os.Stderr, left: 1 << 20}
	t, err := b.start(p, p.transports[0], "", b.toolServers(10, 2), l)
	if err != nil {
		return err
	}
	defer t.stop()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := t.ready(ctx, "srv0"); err != nil {
		return err
	}
	surface, err := t.surface(ctx, []string{"srv0", "srv1"})
	fmt.Println(surface, err)
	steps := p.before("srv1", "echo")
	if p.search != nil {
		steps = append(steps, step{p.search.tool, query("read a file")})
	}
	for _, one := range steps {
		answer, err := t.callOwn(ctx, "srv1", one)
		fmt.Printf("\n== %s %s\n%s %v\n", one.tool, one.args, answer, err)
	}
	answer, err := t.call(ctx, "srv1", "echo", `{"text":"hello"}`)
	fmt.Printf("\n== echo\n%s %v\n", answer, err)
	return nil
}
