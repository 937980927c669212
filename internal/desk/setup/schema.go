package setup

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mcpx/internal/desk/config"
)

// schemaName is the name of the file with the JSON schema of the config. It is in the folder of the config.
const schemaName = "config.schema.json"

func schemaBeside(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), schemaName)
}

// NameSchema adds the key "$schema" with the name of the schema file to the text of a config, as its first key. It returns the text
// unchanged if the config has the key already, or if there is a file of this name that mcpx did not write.
func NameSchema(configFile string, data []byte) ([]byte, error) {
	there, existed, err := Read(schemaBeside(configFile))
	if err != nil || existed && !isSchema(there) {
		return data, err
	}
	return editJSON(data, func(d *jsonText) error {
		if d.value("$schema") != nil {
			return nil
		}
		o := d.objectAt()
		if o == nil || len(o.Members) == 0 {
			return d.set("./"+schemaName, "$schema")
		}
		before, after := "", " "
		if _, line, broken := strings.Cut(string(o.Members[0].Name.BeforeExtra), "\n"); broken {
			before, after = d.eol()+line[:len(line)-len(strings.TrimLeft(line, " \t"))], ""
		}
		start := d.root.StartOffset + 1
		return d.apply(splice{start, start, before + `"$schema": "./` + schemaName + `",` + after})
	})
}

// WriteSchema writes the schema into the folder of a config. It returns an error if that would overwrite a file that mcpx did not
// write.
func WriteSchema(configFile string) (file string, err error) {
	file = schemaBeside(configFile)
	before, existed, err := Read(file)
	if err == nil && existed && !isSchema(before) {
		err = fmt.Errorf("%s is not a schema that mcpx wrote; it was not changed", file)
	}
	if err == nil {
		_, err = write(file, config.Schema(), before, existed)
	}
	return file, err
}

// RemoveSchema removes the file that [WriteSchema] wrote, unless the config refers to it with "$schema".
func RemoveSchema(configFile string) (removed bool, err error) {
	file := schemaBeside(configFile)
	data, existed, err := Read(file)
	if err != nil || !existed || !isSchema(data) {
		return false, err
	}
	text, _, err := config.Read(configFile)
	if d, unread := parseJSONText(text); err != nil || unread == nil && d.namesSchema() {
		return false, err
	}
	return true, os.Remove(file)
}

// namesSchema reports whether "$schema" in the config refers to the schema file in the config's folder.
func (d *jsonText) namesSchema() bool {
	at := d.value("$schema")
	return at != nil && string(raw(at)) == `"./`+schemaName+`"`
}

func isSchema(data []byte) bool {
	var is struct{ Title string }
	return json.Unmarshal(data, &is) == nil && is.Title == config.SchemaTitle
}

// configID is written into the records of [Backups] for mcpx's own config, in place of the ID of a client.
const configID = "config"

// Edit plans a change of mcpx's config from oldText to newText, and writes nothing. [Backups.Write] makes the change. existed is
// false if there is no file yet.
func (b Backups) Edit(file string, oldText, newText []byte, existed bool) Change {
	change := Change{Client: Client{ID: configID}, File: file, Existed: existed, Before: oldText, After: newText, first: true, exact: true}
	if r, ok, _ := b.record(file); ok && r.After == hash(oldText) {
		change.record, change.first = r, false
	}
	change.record.Client, change.record.File = configID, file
	return change
}

// Restore plans to undo [Backups.Edit]. If the config has not changed since mcpx wrote it, and the backup can be read, the config
// will get its old content back. Otherwise Restore only removes the key "$schema", if the value of this key names the schema file
// of mcpx. Restore writes nothing; [Backups.Undo] does.
func (b Backups) Restore(file string) (Change, error) {
	change, backup, _, err := b.forUndo(Client{ID: configID}, file, config.Read)
	if err != nil {
		return change, err
	}
	if change.Exact {
		change.After, change.Gone = backup, change.record.Backup == ""
		return change, nil
	}
	d, err := parseJSONText(change.Before)
	if err != nil {
		return change, unwritten(file, err)
	}
	if d.namesSchema() {
		err = d.remove("$schema")
		change.After = d.data()
	}
	return change, err
}
