package main

import (
	"compress/flate"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mcpx/internal/mcptest"
)

// TestFormula: the formula names the archives of macOS and Linux with their checksums, at the place of the module, and Ruby
// reads it.
func TestFormula(t *testing.T) {
	of := func(module string, platforms []platform) map[string][]byte {
		var binaries []*binary
		for _, p := range platforms {
			info := &buildinfo.BuildInfo{Main: debug.Module{Path: module}}
			binaries = append(binaries, &binary{p, []byte(p.os + p.arch), info})
		}
		r := &making{version: version{npm: "1.2.3", pypi: "1.2.3", commit: "c"}, level: flate.NoCompression}
		files, err := r.everything(binaries)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	for module, some := range map[string][]platform{"mcpx": platforms, "github.com/someone/mcpx": platforms[:1]} {
		if of(module, some)["mcpx.rb"] != nil {
			t.Errorf("a formula for %s, of %d platforms", module, len(some))
		}
	}
	files := of("github.com/someone/mcpx", platforms)
	formula := files["mcpx.rb"]
	found := regexp.MustCompile(`url "https://github\.com/someone/mcpx/releases/download/v1\.2\.3/(\S+)"\s+sha256 "(\w+)"`).FindAllSubmatch(formula, -1)
	if len(found) != 4 {
		t.Errorf("%d archives:\n%s", len(found), formula)
	}
	for _, one := range found {
		name := string(one[1])
		if data := files[name]; data == nil || fmt.Sprintf("%x", sha256.Sum256(data)) != string(one[2]) {
			t.Errorf("%s does not have the checksum %s", name, one[2])
		}
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("ruby is not installed")
	}
	// The script does what Homebrew does with a formula, for each system and processor.
	script := filepath.Join(t.TempDir(), "brew.rb")
	if err := os.WriteFile(script, append([]byte(`
class Formula
  %w[desc homepage version license sha256].each { |name| define_singleton_method(name) { |_| } }
  def self.url(value) = puts(value)
  def self.test = nil
  SYSTEM, PROCESSOR = ARGV
  %w[macos linux].each { |name| define_singleton_method("on_" + name) { |&block| block.call if name == SYSTEM } }
  %w[arm intel].each { |name| define_singleton_method("on_" + name) { |&block| block.call if name == PROCESSOR } }
end
`), formula...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(t, ".", ruby, "-w", script, "macos", "arm"); !strings.HasSuffix(out, "/mcpx-1.2.3-darwin-arm64.tar.gz\n") {
		t.Error(out)
	}
}

// TestSign: users can check the signature of the checksums. The check fails if the checksums were changed. A key that is not
// among the keys that users trust is refused.
func TestSign(t *testing.T) {
	keygen, out, keys := program(t, "ssh-keygen"), t.TempDir(), t.TempDir()
	if err := write(out, map[string][]byte{"a": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(keys, "allowed_signers")
	for _, name := range []string{"own", "other"} {
		run(t, keys, keygen, "-q", "-t", "ed25519", "-N", "", "-f", name)
	}
	public, err := os.ReadFile(filepath.Join(keys, "own.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(signers, append([]byte("mcpx "), public...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sign(out, filepath.Join(keys, "own"), signers); err != nil {
		t.Fatal(err)
	}
	// The test runs the command of docs/releasing.md in a folder with the files.
	document, err := os.ReadFile("docs/releasing.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ {4}(ssh-keygen -Y verify .*)$`).FindSubmatch(document)
	if line == nil {
		t.Fatal("docs/releasing.md does not say how to check a signature")
	}
	check := func() (string, error) {
		command := exec.Command("sh", "-c", string(line[1]))
		command.Dir = out
		said, err := command.CombinedOutput()
		return string(said), err
	}
	if err := os.Rename(signers, filepath.Join(out, "allowed_signers")); err != nil {
		t.Fatal(err)
	}
	if said, err := check(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if err := os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte("others"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := check(); err == nil {
		t.Errorf("changed checksums pass: %s", said)
	}
	if err := os.Remove(filepath.Join(out, "SHA256SUMS.sig")); err != nil {
		t.Fatal(err)
	}
	if err := sign(out, filepath.Join(keys, "other"), filepath.Join(out, "allowed_signers")); err == nil {
		t.Error("a key that users do not know signs")
	}
}

// helmVersion is the version of Helm that a full run builds if no Helm is installed. A release needs no Helm.
const helmVersion = "v3.22.0"

// TestChart: Helm finds no fault in the chart. With two keys, an image, and otherwise the default values, the chart makes the
// same objects as deploy/kubernetes.yaml.
func TestChart(t *testing.T) {
	helm, err := exec.LookPath("helm")
	if err != nil {
		if !mcptest.Full {
			t.Skip("helm is not installed; with MCPX_FULL=1 it is built")
		}
		into := t.TempDir()
		install := exec.Command("go", "install", "helm.sh/helm/v3/cmd/helm@"+helmVersion) // may take longer than the patience of run
		install.Env = append(os.Environ(), "GOBIN="+into)
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		helm = filepath.Join(into, "helm")
	}
	run := func(args ...string) string {
		t.Helper()
		args = append(args, "--kube-version", "1.37.0") // a Helm that go install has built assumes an old version of Kubernetes
		return run(t, ".", helm, args...)
	}
	zero := strings.Repeat("0", 64)
	keys := []string{"--set-string", "secrets.CLUSTER_KEY=" + zero, "--set-string", "secrets.AUDIT_KEY=" + zero}
	run(append([]string{"lint", "--strict", "deploy/chart"}, keys...)...)
	written, err := os.ReadFile("deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := manifests(t, string(written))
	got := manifests(t, run(append([]string{"template", "mcpx", "deploy/chart", "--set", "image=mcpx:0.1.0"}, keys...)...))
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s:\n%s\ndeploy/kubernetes.yaml:\n%s", name, indented(got[name]), indented(want[name]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d manifests, and %d in deploy/kubernetes.yaml", len(got), len(want))
	}
	small := manifests(t, run("template", "mcpx", "deploy/chart", "--set", "existingSecret=own,autoscaling.enabled=false,nats.enabled=false,storage.class=fast"))
	if len(small) != 4 || !strings.Contains(indented(small["StatefulSet mcpx"]), `"storageClassName": "fast"`) {
		t.Errorf("%q", sorted(small))
	}
	command := exec.Command(helm, "template", "mcpx", "deploy/chart", "--kube-version", "1.37.0")
	if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), "secrets.AUDIT_KEY is empty") {
		t.Errorf("without keys: %v: %s", err, out)
	}
}

// manifests reads the objects of a stream of YAML documents, by kind and name.
func manifests(t *testing.T, text string) map[string]any {
	t.Helper()
	all := make(map[string]any)
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one map[string]any
		if decoder.Decode(&one) != nil {
			break
		}
		metadata, _ := one["metadata"].(map[string]any)
		all[fmt.Sprint(one["kind"], " ", metadata["name"])] = one
	}
	if len(all) == 0 {
		t.Errorf("no manifests in:\n%s", text)
	}
	return all
}

func indented(value any) string {
	text, _ := json.MarshalIndent(value, "", "  ")
	return string(text)
}
