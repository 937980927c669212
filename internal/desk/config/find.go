package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// EnvPath is the environment variable that names the config file.
const EnvPath = "MCPX_CONFIG"

// localPath is read only when a user sits at the terminal: an editor that
// starts mcpx in a cloned repository must not run what that repository says.
const localPath = "config.json"

// Find says which config file to load: flag, else $MCPX_CONFIG, else
// mcpx/config.json in userConfigDir (empty where the system has none), else
// ./config.json when stdin is a terminal. The file exists when err is nil;
// otherwise err is a [*Error] with a hint.
func Find(flag string, getenv func(string) (string, bool), stdinTTY bool, userConfigDir string) (path string, err error) {
	if flag != "" {
		return flag, found(flag)
	}
	if named, _ := getenv(EnvPath); named != "" {
		return named, found(named)
	}
	user := ""
	if userConfigDir != "" {
		user = filepath.Join(userConfigDir, "mcpx", "config.json")
		if found(user) == nil {
			return user, nil
		}
	}
	local := found(localPath) == nil
	if stdinTTY && local {
		return localPath, nil
	}
	missing := &Error{Text: "config file not found: " + user, Advice: advice(user)}
	if user == "" {
		missing.Text = "config file not found: there is no user configuration folder to look in"
		missing.Advice = advice("a file named with --config")
	}
	if local {
		missing.Advice += "; ./config.json is used only from a terminal or when --config names it"
	}
	return "", missing
}

// found is nil when there is something at path. Loading reports anything that is not a file.
func found(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return notFound(path)
	}
	return nil
}

func notFound(path string) *Error {
	return &Error{Text: "config file not found: " + path, Advice: advice(path)}
}

func advice(target string) string {
	return `run "mcpx init" to make one from the files of your MCP clients, "mcpx demo" to try mcpx without a config, or copy config.example.json to ` + target
}
