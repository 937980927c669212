package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"io/fs"
	"time"
)

// file is a file to put into an archive. program means that the file is a program for users: it is executable in the archive.
type file struct {
	name    string
	data    []byte
	program bool
}

func (f file) mode() fs.FileMode {
	if f.program {
		return 0o755
	}
	return 0o644
}

// fileTime is the modification time of all files in archives and in deb and rpm packages. It is fixed so that the same files
// always give the same bytes. It is the earliest time that zip supports.
var fileTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// zipped returns a zip archive with the files.
func zipped(level int, files []file) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, level)
	})
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: fileTime}
		header.SetMode(f.mode())
		into, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := into.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// tarred returns a tar archive with the files, compressed with gzip.
func tarred(level int, files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.data)), Mode: int64(f.mode()),
			ModTime: fileTime, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return out.Bytes(), err
}

// archive makes the archive with one binary, for users who install without a package registry.
func (r *making) archive(b *binary) {
	pack, extension := tarred, ".tar.gz"
	if b.os == "windows" {
		pack, extension = zipped, ".zip"
	}
	data, err := pack(r.level, []file{{b.name(), b.data, true}, {"LICENSES.txt", r.licences, false}})
	r.add("mcpx-"+r.version.npm+"-"+b.target()+extension, data, err)
}
