// Command release builds what users install: binaries for six platforms, bundles for Claude Desktop, npm packages, Python
// wheels, deb and rpm, a Homebrew formula (if the path of the module is a place on the web) and a Helm chart, with checksums
// and a list of the Go modules in the binaries. The same commit and the same version of Go give the same bytes, in whatever
// folder they are built.
//
//	go run ./tools/release                     all platforms, into the folder dist
//	go run ./tools/release -only linux/amd64   only one platform
//	go run ./tools/release -sign KEY           signs SHA256SUMS with an SSH key
//
// The version comes from the tag of the commit; without a tag it is Go's pseudo-version. The command publishes nothing;
// docs/releasing.md says how to publish.
package main

import (
	"compress/flate"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// platform is an operating system and processor for which mcpx is built.
type platform struct {
	os, arch string // values of GOOS and GOARCH
	npm      string // process.platform and process.arch of Node, joined with "-"
	wheel    string // the platform tags of a Python wheel, joined with "."
	mcpb     string // the platform in the manifest of a Claude Desktop bundle
}

// platforms are the platforms that mcpx is released for. The binaries are static, so the Linux binaries work with both
// glibc and musl.
var platforms = []platform{
	{"darwin", "amd64", "darwin-x64", "macosx_12_0_x86_64", "darwin"},
	{"darwin", "arm64", "darwin-arm64", "macosx_12_0_arm64", "darwin"},
	{"linux", "amd64", "linux-x64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux"},
	{"linux", "arm64", "linux-arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux"},
	{"windows", "amd64", "win32-x64", "win_amd64", "win32"},
	{"windows", "arm64", "win32-arm64", "win_arm64", "win32"},
}

// binary is the program mcpx, built for one platform.
type binary struct {
	platform
	data []byte
	info *buildinfo.BuildInfo
}

// name returns the file name of the program.
func (b *binary) name() string {
	if b.os == "windows" {
		return "mcpx.exe"
	}
	return "mcpx"
}

// target returns the name of the platform in file names.
func (p platform) target() string { return p.os + "-" + p.arch }

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	out := flag.String("out", "dist", "the `folder` for what is made; it must not exist yet or be empty")
	only := flag.String("only", "", "one platform, such as linux/amd64, instead of six")
	key := flag.String("sign", "", "the SSH `key` that signs SHA256SUMS; its public half has to be in "+signers)
	flag.Parse()
	if err := release(*out, *only, *key); err != nil {
		log.Fatal(err)
	}
}

func release(out, only, key string) error {
	if entries, _ := os.ReadDir(out); len(entries) > 0 {
		return fmt.Errorf("%s is not empty; its files may be of another version", out)
	}
	var wanted []platform
	for _, p := range platforms {
		if only == "" || only == p.os+"/"+p.arch {
			wanted = append(wanted, p)
		}
	}
	if len(wanted) == 0 {
		return fmt.Errorf("-only %s: there is no such platform", only)
	}
	temp, err := os.MkdirTemp("", "mcpx-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	r := &making{level: flate.BestCompression}
	var binaries []*binary
	for _, p := range wanted {
		one, err := build(p, temp)
		if err != nil {
			return fmt.Errorf("building for %s/%s: %w", p.os, p.arch, err)
		}
		// The version is read before the other platforms are built, because building takes minutes.
		if r.version, err = versionOf(one.info); err != nil {
			return err
		}
		binaries = append(binaries, one)
	}
	if r.nfpm, err = buildNfpm(temp); err != nil {
		return err
	}
	files, err := r.everything(binaries)
	if err != nil {
		return err
	}
	if err := write(out, files); err != nil {
		return err
	}
	for _, name := range sorted(files) {
		fmt.Printf("%10d  %s\n", len(files[name]), name)
	}
	if r.home == "" {
		fmt.Println("There is no Homebrew formula: the path of the module is no place where archives could be; tools/release/rename gives it one.")
	}
	if key == "" {
		fmt.Println("SHA256SUMS is not signed: -sign KEY signs it.")
		return nil
	}
	return sign(out, key, signers)
}

// build compiles mcpx for a platform, in the folder temp. The flags remove file paths and symbols and exclude C code, so that
// the content of the binary depends only on the commit and the version of Go.
func build(p platform, temp string) (*binary, error) {
	path := filepath.Join(temp, p.target())
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, "./cmd/mcpx")
	command.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch,
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	return read(p, path)
}

// read reads the binary at path, which was built for platform p, and the build information in it.
func read(p platform, path string) (*binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	return &binary{p, data, info}, err
}

// everything makes all files of a release except the checksums and their signature. The keys of the map are the file names.
func (r *making) everything(binaries []*binary) (map[string][]byte, error) {
	r.files = make(map[string][]byte)
	if module := binaries[0].info.Main.Path; strings.Contains(module, "/") {
		r.home = module
	}
	for _, b := range binaries {
		var err error
		if r.licences, err = licences(b); err != nil {
			return nil, err
		}
		r.archive(b)
		r.bundle(b)
		r.npmPlatform(b)
		r.wheel(b)
		r.system(b)
	}
	r.npmLauncher()
	r.formula()
	r.chart()
	r.add("mcpx-"+r.version.npm+".cdx.json", contents(r.version, binaries), nil)
	return r.files, r.err
}

// making is a release that is being made.
type making struct {
	version  version
	level    int    // the compression level
	nfpm     string // path of nfpm, the program that makes deb and rpm; empty: neither is made
	home     string // where the release is published, such as github.com/OWNER/mcpx; empty: no formula is made
	licences []byte // the licences of mcpx and of all modules in the current binary
	files    map[string][]byte
	err      error // the first error of making a file
}

// add adds a file to the release. err is the error of making the file; add keeps only the first error of all files.
func (r *making) add(name string, data []byte, err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("making %s: %w", name, err)
	}
	r.files[name] = data
}

// write writes the files, and SHA256SUMS with their checksums, into a folder.
func write(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, name := range sorted(files) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	files["SHA256SUMS"] = []byte(sums.String())
	for _, name := range sorted(files) {
		if err := os.WriteFile(filepath.Join(folder, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// licences returns the text of the licences of mcpx and of all modules in a binary.
func licences(b *binary) ([]byte, error) {
	var out strings.Builder
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, fmt.Errorf("run it in the root of the repository: %w", err)
	}
	fmt.Fprintf(&out, "mcpx\n\n%s", own)
	all := modules([]*binary{b})
	list := []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, m := range all {
		list = append(list, m.Path)
	}
	var dirs []string
	if len(all) > 0 { // without arguments, go list would describe mcpx
		lines, err := exec.Command("go", list...).Output()
		if err != nil {
			return nil, fmt.Errorf("finding the modules: %w", err)
		}
		dirs = strings.Split(string(lines), "\n")
	}
	for i, m := range all {
		var texts []string
		for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "NOTICE*"} {
			found, _ := filepath.Glob(filepath.Join(dirs[i], pattern))
			texts = append(texts, found...)
		}
		if len(texts) == 0 {
			return nil, fmt.Errorf("%s %s has no file with its licence", m.Path, m.Version)
		}
		for _, path := range texts {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "\n\n%s\n%s %s (%s)\n\n%s", strings.Repeat("-", 80), m.Path, m.Version, filepath.Base(path), text)
		}
	}
	return []byte(out.String()), nil
}

// modules returns the modules other than mcpx that any of the binaries contains, sorted by path.
func modules(binaries []*binary) (all []*debug.Module) {
	found := make(map[string]*debug.Module)
	for _, b := range binaries {
		for _, m := range b.info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			found[m.Path] = m
		}
	}
	for _, path := range sorted(found) {
		all = append(all, found[path])
	}
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
