package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// formula makes the Homebrew formula. It makes none if an archive for macOS or Linux is missing, or if the place where the archives
// will be published is not known (r.home is empty).
func (r *making) formula() {
	if r.home == "" {
		return
	}
	var platforms strings.Builder
	for _, system := range [][2]string{{"darwin", "macos"}, {"linux", "linux"}} {
		fmt.Fprintf(&platforms, "  on_%s do\n", system[1])
		for _, processor := range [][2]string{{"arm64", "arm"}, {"amd64", "intel"}} {
			name := "mcpx-" + r.version.npm + "-" + system[0] + "-" + processor[0] + ".tar.gz"
			archive, ok := r.files[name]
			if !ok {
				return
			}
			fmt.Fprintf(&platforms, "    on_%s do\n      url %q\n      sha256 \"%x\"\n    end\n", processor[1], r.download(name), sha256.Sum256(archive))
		}
		platforms.WriteString("  end\n")
	}
	r.add("mcpx.rb", fmt.Appendf(nil, `class Mcpx < Formula
  desc "Puts many MCP servers behind two tools, in fewer tokens"
  homepage "https://%s"
  version %q
  license %q
%s
  def install
    bin.install "mcpx"
    generate_completions_from_executable(bin/"mcpx", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcpx version")
  end
end
`, r.home, r.version.npm, licence, platforms.String()), nil)
}

// download returns the URL of a file of the release.
func (r *making) download(name string) string {
	return "https://" + r.home + "/releases/download/v" + r.version.npm + "/" + name
}
