package setup

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mcpx/internal/desk/config"
)

// schemaName is the file of the schema, which lies beside a config.
const schemaName = "config.schema.json"

func schemaBeside(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), schemaName)
}

// NameSchema names the schema beside it in the text of a config, before its other keys. A config
// that names a schema, or has another file of that name beside it, stays as it is.
func NameSchema(configFile string, data []byte) ([]byte, error) {
	there, existed, err := read(schemaBeside(configFile))
	if err != nil || existed && !isSchema(there) {
		return data, err
	}
	d, err := parseJSONText(data)
	if err != nil || d.value("$schema") != nil {
		return data, err
	}
	if o := d.objectAt(); o == nil || len(o.Members) == 0 {
		d, err = d.set("./"+schemaName, "$schema")
	} else {
		gap, behind := "", " "
		if _, line, broken := strings.Cut(string(o.Members[0].Name.BeforeExtra), "\n"); broken {
			gap, behind = d.eol()+line[:len(line)-len(strings.TrimLeft(line, " \t"))], ""
		}
		start := d.root.StartOffset + 1
		d, err = d.apply(splice{start, start, gap + `"$schema": "./` + schemaName + `",` + behind})
	}
	if err != nil {
		return nil, err
	}
	return d.data(), nil
}

// WriteSchema writes the schema beside a config. Another file of that name stays, and is an error.
func WriteSchema(configFile string) (file string, err error) {
	file = schemaBeside(configFile)
	before, existed, err := read(file)
	if err == nil && existed && !isSchema(before) {
		err = fmt.Errorf("%s is no schema of mcpx; it stays as it is", file)
	}
	if err == nil {
		_, err = write(file, config.Schema(), before, existed)
	}
	return file, err
}

// RemoveSchema removes what [WriteSchema] has written, unless the config names it.
func RemoveSchema(configFile string) (removed bool, err error) {
	file := schemaBeside(configFile)
	data, existed, err := read(file)
	if err != nil || !existed || !isSchema(data) {
		return false, err
	}
	text, _, err := read(configFile)
	if d, unread := parseJSONText(text); err != nil || unread == nil && d.namesSchema() {
		return false, err
	}
	return true, os.Remove(file)
}

// namesSchema reports whether a config names the schema beside it.
func (d *jsonText) namesSchema() bool {
	at := d.value("$schema")
	return at != nil && string(raw(at)) == `"./`+schemaName+`"`
}

func isSchema(data []byte) bool {
	var is struct{ Title string }
	return json.Unmarshal(data, &is) == nil && is.Title == config.SchemaTitle
}

// configID is what the config of mcpx is called among the records of the files of clients.
const configID = "config"

// Edit plans another text of a config.
func (b Backups) Edit(file string, before, after []byte, existed bool) Change {
	change := Change{Client: Client{ID: configID}, File: file, Existed: existed, Before: before, After: after, first: true, exact: true}
	if r, ok := b.record(file); ok && r.After == hash(before) {
		change.record, change.first = r, false
	}
	change.record.Client, change.record.File = configID, file
	return change
}

// Restore plans the way back from [Backups.Edit]: to the very bytes from before where the file is
// still as mcpx wrote it, else only without the name of the schema.
func (b Backups) Restore(file string) (Change, error) {
	change, backup, _, err := b.back(Client{ID: configID}, file)
	if err != nil {
		return change, err
	}
	if change.Exact {
		change.After, change.Gone = backup, change.record.Backup == ""
		return change, nil
	}
	d, err := parseJSONText(change.Before)
	if err != nil {
		return change, fmt.Errorf("%s: %w; nothing was written", file, err)
	}
	if d.namesSchema() {
		if d, err = d.remove("$schema"); err == nil {
			change.After = d.data()
		}
	}
	return change, err
}
