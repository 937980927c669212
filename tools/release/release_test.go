package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"debug/buildinfo"

	"mcpx/internal/desk/config"
	"mcpx/internal/mcptest"
)

// patience is a time limit that is exceeded only if a test fails.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestRelease makes the packages for this platform, installs or unpacks each of them without a network, and checks that mcpx
// starts.
func TestRelease(t *testing.T) {
	mcptest.OneGoroutine(t)
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.os == runtime.GOOS && p.arch == runtime.GOARCH })
	if i < 0 || runtime.GOOS == "windows" {
		t.Skip("no package for this platform can be tried")
	}
	make, level := build, flate.BestSpeed
	if !mcptest.Full {
		make, level = quick, flate.NoCompression
	}
	b, err := make(platforms[i], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v := version{npm: "0.0.1-rc.1", pypi: "0.0.1rc1", commit: "test"}
	r := &making{version: v, level: level}
	if mcptest.Full {
		if r.nfpm, err = buildNfpm(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	files, err := r.everything([]*binary{b})
	if err != nil {
		t.Fatal(err)
	}
	dist := t.TempDir()
	if err := write(dist, files); err != nil {
		t.Fatal(err)
	}

	t.Run("checksums", func(t *testing.T) {
		command := exec.Command(program(t, "sha256sum"), "--strict", "--check", "SHA256SUMS")
		command.Dir = dist
		if out, err := command.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != len(files)-1 {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("archive", func(t *testing.T) {
		into := t.TempDir()
		run(t, into, program(t, "tar"), "-xzf", filepath.Join(dist, "mcpx-0.0.1-rc.1-"+b.target()+".tar.gz"))
		serves(t, filepath.Join(into, "mcpx"))
	})
	registry := serveRegistries(t, files)
	t.Run("npm", func(t *testing.T) {
		npm, into := program(t, "npm"), t.TempDir()
		t.Setenv("npm_config_cache", t.TempDir())
		run(t, into, npm, "install", "--registry", registry+"/npm/", "--no-audit", "--no-fund", "--prefix", into, npmName)
		serves(t, filepath.Join(into, "node_modules", ".bin", "mcpx"))
	})
	t.Run("npm without the binary", func(t *testing.T) {
		npm, into := program(t, "npm"), t.TempDir()
		run(t, into, npm, "install", "--offline", "--no-audit", "--no-fund", "--omit=optional", "--prefix", into, filepath.Join(dist, npmName+"-0.0.1-rc.1.tgz"))
		out, err := exec.Command(filepath.Join(into, "node_modules", ".bin", "mcpx"), "version").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "mcpx: hint: ") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("pip", func(t *testing.T) {
		into := t.TempDir()
		run(t, into, program(t, "python3"), "-m", "venv", "--without-pip", into) // a pip of its own takes seconds
		t.Setenv("PIP_FIND_LINKS", "")
		run(t, into, installed(t, "pip"), "--python", filepath.Join(into, "bin", "python"), "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
			"--index-url", registry+"/pypi/", "--pre", config.Distribution)
		serves(t, filepath.Join(into, "bin", "mcpx"))
	})
	t.Run("uvx", func(t *testing.T) {
		uvx := installed(t, "uvx")
		out := run(t, t.TempDir(), uvx, "--default-index", registry+"/pypi/", "--prerelease", "allow", "--cache-dir", t.TempDir(),
			"--from", config.Distribution, "mcpx", "version")
		if !strings.Contains(out, "\nprotocols ") {
			t.Errorf("got %s", out)
		}
	})
	t.Run("bundle", func(t *testing.T) {
		bundle, into := filepath.Join(dist, "mcpx-0.0.1-rc.1-"+b.target()+".mcpb"), t.TempDir()
		mcpb, err := filepath.Abs("testdata/npm/node_modules/.bin/mcpb")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(mcpb); err != nil {
			mcptest.Missing(t, "mcpb is not installed; .ci/run does that")
		}
		run(t, into, mcpb, "unpack", bundle, into)
		run(t, into, mcpb, "validate", filepath.Join(into, "manifest.json"))
		serves(t, filepath.Join(into, "server", "mcpx"))
	})
	t.Run("deb", func(t *testing.T) {
		deb, into := filepath.Join(dist, "mcpx-0.0.1-rc.1-"+b.target()+".deb"), t.TempDir()
		skipWithout(t, files, deb, "dpkg-deb")
		if out := run(t, into, "dpkg-deb", "--field", deb, "Package", "Version", "Architecture"); out !=
			"Package: mcpx\nVersion: 0.0.1~rc.1\nArchitecture: "+runtime.GOARCH+"\n" {
			t.Error(out)
		}
		run(t, into, "dpkg-deb", "--extract", deb, into)
		installedRight(t, into, "usr/share/zsh/vendor-completions/_mcpx")
	})
	t.Run("rpm", func(t *testing.T) {
		rpm, into := filepath.Join(dist, "mcpx-0.0.1-rc.1-"+b.target()+".rpm"), t.TempDir()
		skipWithout(t, files, rpm, "rpm2archive")
		run(t, into, "rpm", "--checksig", "--nosignature", rpm)
		run(t, into, "rpm2archive", rpm) // writes a tar archive beside it
		run(t, into, "tar", "-xzf", rpm+".tgz")
		installedRight(t, into, "usr/share/zsh/site-functions/_mcpx")
	})
	t.Run("contents", func(t *testing.T) {
		var bom struct {
			Components []struct{ Name, Version, Purl string }
		}
		if err := json.Unmarshal(files["mcpx-0.0.1-rc.1.cdx.json"], &bom); err != nil || len(bom.Components) != len(b.info.Deps)+1 {
			t.Errorf("%v: %d components, and %d modules", err, len(bom.Components), len(b.info.Deps))
		}
	})
}

// skipWithout skips a test of a package that only a full run makes, or whose program is not on this system.
func skipWithout(t *testing.T, files map[string][]byte, path, program string) {
	t.Helper()
	if files[filepath.Base(path)] == nil {
		t.Skip("made with MCPX_FULL=1")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// installedRight checks the files that a deb or rpm package has put into the folder root.
func installedRight(t *testing.T, root string, more string) {
	t.Helper()
	serves(t, filepath.Join(root, "usr/bin/mcpx"))
	for _, name := range []string{"usr/share/doc/mcpx/copyright", "usr/share/doc/mcpx/docs/hosting.md", more,
		"usr/share/bash-completion/completions/mcpx", "usr/share/fish/vendor_completions.d/mcpx.fish"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/mcpx.service"))
	if err != nil || !bytes.Contains(unit, []byte("ExecStart=/usr/bin/mcpx ")) {
		t.Errorf("%v: %s", err, unit)
	}
}

// quick builds mcpx with the same flags as the tests, so that packages in the build cache are not compiled again. A full
// test run uses build, as a release does.
func quick(p platform, temp string) (*binary, error) {
	path := filepath.Join(temp, p.target())
	args := []string{"build", "-buildvcs=true", "-ldflags=-s -w", "-o", path}
	if mcptest.Race {
		args = append(args, "-race")
	}
	command := exec.Command("go", append(args, "./cmd/mcpx")...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	return read(p, path)
}

// TestVersion checks the versions for npm and PyPI, for commits with and without a tag.
func TestVersion(t *testing.T) {
	of := func(main, modified string) (version, error) {
		return versionOf(&buildinfo.BuildInfo{Main: debug.Module{Version: main}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: modified}}})
	}
	for main, want := range map[string]string{
		"v1.2.3": "1.2.3 1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1 1.2.3rc1", "v0.2.0-beta.12": "0.2.0-beta.12 0.2.0b12",
		"v0.0.0-20261121200244-980eeab5e3f8":        "0.0.0-20261121200244-980eeab5e3f8 0.0.0.dev20261121200244",
		"v1.2.4-0.20261121200244-980eeab5e3f8":      "1.2.4-0.20261121200244-980eeab5e3f8 1.2.4.dev20261121200244",
		"v1.2.3-rc.1.0.20261121200244-980eeab5e3f8": "1.2.3-rc.1.0.20261121200244-980eeab5e3f8 1.2.3rc2.dev20261121200244",
		"v1.2.3-rc.0.20261121200244-980eeab5e3f8":   "error", "v1.2.3-rc.1.2": "error", "v1.2.3-rc": "error",
		"v1.2.3-what.1": "error", "v1.2.3-what.1.0.20261121200244-980eeab5e3f8": "error",
	} {
		v, err := of(main, "false")
		if got := v.npm + " " + v.pypi; err == nil && got != want || (err != nil) != (want == "error") {
			t.Errorf("%s: %s, %v; want %s", main, got, err, want)
		}
	}
	if _, err := of("v1.2.3", "true"); err == nil {
		t.Error("a tree with changes is released")
	}
	if _, err := versionOf(&buildinfo.BuildInfo{}); err == nil {
		t.Error("a binary without a commit is released")
	}
}

// TestSameBytes: a release that is made twice from the same binaries has the same files.
func TestSameBytes(t *testing.T) {
	var binaries []*binary
	for _, p := range platforms {
		binaries = append(binaries, &binary{p, []byte(p.os + p.arch), &buildinfo.BuildInfo{GoVersion: "go1.26"}})
	}
	nfpm := ""
	if mcptest.Full {
		var err error
		if nfpm, err = buildNfpm(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	make := func() map[string][]byte {
		r := &making{version: version{npm: "1.0.0", pypi: "1.0.0", commit: "c"}, level: flate.BestSpeed, nfpm: nfpm}
		files, err := r.everything(binaries)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	files, again := make(), make()
	want := 4*len(platforms) + 3
	if nfpm != "" {
		want += 4
	}
	if len(files) != want {
		t.Errorf("%d files: %q", len(files), sorted(files))
	}
	for name, data := range files {
		if !bytes.Equal(data, again[name]) {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
}

// TestArchives: in a zip archive, programs are executable, and the modification time of files is fixed.
func TestArchives(t *testing.T) {
	data, err := zipped(flate.BestSpeed, []file{{"a", []byte("1"), false}, {"b/c", []byte("2"), true}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []os.FileMode{0o644, 0o755} {
		if f := r.File[i]; f.Mode() != want || f.Modified.Year() > 1980 {
			t.Errorf("%s: %v, of %v", f.Name, f.Mode(), f.Modified)
		}
	}
}

// TestDeploy checks the Dockerfile, the manifests for Kubernetes and the systemd unit, with linters or with the programs that
// read them.
func TestDeploy(t *testing.T) {
	t.Run("Dockerfile", func(t *testing.T) {
		if out := run(t, ".", installed(t, "hadolint"), "deploy/Dockerfile"); out != "" {
			t.Error(out)
		}
	})
	t.Run("Kubernetes", func(t *testing.T) {
		run(t, ".", installed(t, "kubernetes-validate"), "--strict", "-k", "1.37", "deploy/kubernetes.yaml")
	})
	t.Run("systemd", func(t *testing.T) {
		analyze, err := exec.LookPath("systemd-analyze")
		if err != nil {
			t.Skip("systemd-analyze is not installed")
		}
		unit, err := os.ReadFile("deploy/mcpx.service")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "mcpx.service") // a copy that starts a program which exists
		if err := os.WriteFile(path, bytes.ReplaceAll(unit, []byte("/usr/local/bin/mcpx"), []byte("/bin/true")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := run(t, ".", analyze, "verify", path); out != "" { // verify prints unknown keys, but exits with status 0
			t.Error(out)
		}
		run(t, ".", analyze, "security", "--no-pager", "--offline=true", "--threshold=20", path)
	})
}

// serveRegistries serves the packages as npm does below /npm/, and the wheels as PyPI does below /pypi/. Packages of other
// platforms are not there. It returns the URL.
func serveRegistries(t *testing.T, files map[string][]byte) string {
	t.Helper()
	t.Setenv("NO_PROXY", "127.0.0.1")
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.PathValue("name")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	})
	mux.HandleFunc("GET /npm/{name}", func(w http.ResponseWriter, r *http.Request) {
		for name, data := range files {
			if filepath.Ext(name) != ".tgz" {
				continue
			}
			manifest := manifestOf(data)
			if manifest["name"] != r.PathValue("name") {
				continue
			}
			version := manifest["version"].(string)
			manifest["dist"] = map[string]any{
				"tarball": server.URL + "/files/" + name, "integrity": fmt.Sprintf("sha512-%s", base64.StdEncoding.EncodeToString(sum(data))),
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"name": manifest["name"], "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: manifest},
			})
			return
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("GET /pypi/"+config.Distribution+"/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for name, data := range files {
			if filepath.Ext(name) == ".whl" {
				fmt.Fprintf(w, "<a href=\"/files/%s#sha256=%x\">%s</a>\n", name, sha256.Sum256(data), name)
			}
		}
	})
	return server.URL
}

func sum(data []byte) []byte {
	all := sha512.Sum512(data)
	return all[:]
}

// manifestOf returns package.json of an npm package; nil if the data is none.
func manifestOf(data []byte) (manifest map[string]any) {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if err != nil {
			return nil
		}
		if header.Name == "package/package.json" {
			_ = json.NewDecoder(archive).Decode(&manifest)
			return manifest
		}
	}
}

// serves checks that the program prints its version, that as a stdio server it answers a client and exits at the end of
// the input, and that as an HTTP server it exits after SIGTERM.
func serves(t *testing.T, program string) {
	t.Helper()
	if out := run(t, t.TempDir(), program, "version"); !strings.HasPrefix(out, "mcpx ") {
		t.Errorf("version: %s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	command := exec.CommandContext(ctx, program, "serve", "--demo")
	command.Stdin = strings.NewReader(hello)
	out, err := command.Output()
	if err != nil || !bytes.Contains(out, []byte(`"serverInfo":{"name":"mcpx"`)) {
		t.Errorf("serving: %v: %s", err, out)
	}
	command = exec.CommandContext(ctx, program, "serve", "--demo", "--http", "127.0.0.1:0")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(stderr, first); err != nil { // the beginning of the line with the server's address
		t.Error(err)
	}
	_ = command.Process.Signal(syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, stderr) // ends when mcpx itself has ended, not only its launcher
	if err := command.Wait(); err != nil || ctx.Err() != nil {
		t.Errorf("after TERM: %v, %v", err, ctx.Err())
	}
}

// run runs a program and returns its output. The test fails if the program fails.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// program returns the path of a program on the PATH. If it is not installed, the test fails in CI, and is skipped
// elsewhere.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		mcptest.Missing(t, "%s is not installed; .ci/run does that", name)
	}
	return path
}

// installed returns the path of a program that testdata/pypi/packaging.txt installs.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata/pypi/venv/packaging/bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		mcptest.Missing(t, "%s is not installed; .ci/run does that", name)
	}
	return path
}
