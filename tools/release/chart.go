package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
)

// chart makes the archive of the Helm chart in deploy/chart. Both its version and its appVersion are the version of the
// release.
func (r *making) chart() {
	var files []file
	root := os.DirFS("deploy/chart")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if name == "Chart.yaml" {
			data = bytes.ReplaceAll(data, []byte("0.0.0"), []byte(r.version.npm))
		}
		files = append(files, file{path.Join("mcpx", name), data, false})
		return err
	})
	if err != nil {
		r.add("the chart", nil, err)
		return
	}
	data, err := tarred(r.level, files)
	r.add("mcpx-"+r.version.npm+"-chart.tgz", data, err)
}
