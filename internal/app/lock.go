package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/setup"
	"mcpx/internal/policy"
)

// Lock has the digests of the tool definitions that the user has approved (mcpx lock). The keys are the name of the server,
// then the original name of the tool. For a server that has dialled in, approvedAs makes the first key.
type Lock map[string]map[string]string

// LockPath returns the path of the lock file, which is next to the config.
func LockPath(cfg *config.Config) string { return strings.TrimSuffix(cfg.Path, ".json") + ".lock.json" }

// LoadLock reads the lock file of a config. If the file is missing, it returns an empty lock.
func LoadLock(cfg *config.Config) (Lock, error) {
	data, err := os.ReadFile(LockPath(cfg))
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, nil
	}
	var file struct{ Servers Lock }
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return Lock{}, fmt.Errorf("reading the approved tools in %s: %w", LockPath(cfg), err)
	}
	if file.Servers == nil {
		return Lock{}, nil
	}
	return file.Servers, nil
}

func (b *builder) lock(cfg *config.Config) (Lock, error) {
	if b.profile.samples {
		return nil, nil
	}
	lock, err := LoadLock(cfg)
	return b.state.approvals.merge(lock), err
}

// ChangeLock reads the lock file of a config, lets change change the content, and writes the file. Processes of mcpx that do this
// at the same time take turns, so that no approval gets lost.
func ChangeLock(cfg *config.Config, change func(Lock)) error {
	_, err := setup.InTurn(LockPath(cfg), func() error {
		lock, err := LoadLock(cfg)
		if err != nil {
			return err
		}
		change(lock)
		return lock.save(cfg)
	})
	return err
}

func (l Lock) save(cfg *config.Config) error {
	data, err := json.MarshalIndent(struct {
		Servers Lock `json:"servers"`
	}{l}, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Rewrite(LockPath(cfg), append(data, '\n')); err != nil {
		return fmt.Errorf("keeping the approved tools: %w", err)
	}
	return nil
}

// Approve makes the present tools of a server the approved ones. It does not write the lock file.
func (l Lock) Approve(s *catalog.Server) {
	l[s.Name] = make(map[string]string, len(s.Tools))
	for i := range s.Tools {
		l[s.Name][s.Tools[i].Name] = policy.Digest(&s.Tools[i])
	}
}

// Changes returns the sorted names of the tools that were added, changed and removed since the user approved the server. s must have all
// tools of the server, as in the registry's snapshot.
func (l Lock) Changes(s *catalog.Server) (added, changed, gone []string) {
	approved := l[s.Name]
	for i := range s.Tools {
		switch digest, known := approved[s.Tools[i].Name]; {
		case !known:
			added = append(added, s.Tools[i].Name)
		case digest != policy.Digest(&s.Tools[i]):
			changed = append(changed, s.Tools[i].Name)
		}
	}
	for name := range approved {
		if _, there := s.Tool(name); !there {
			gone = append(gone, name)
		}
	}
	for _, names := range [][]string{added, changed, gone} {
		slices.Sort(names)
	}
	return added, changed, gone
}

// changedTools logs tools whose definition has changed, because a server that was harmless when it was added can turn
// malicious. It compares with the definitions that the user approved or, without an approval, with the previous snapshot. The
// first snapshot is from the cache on disk, so changes since the last run are logged too. It skips servers whose pin is off.
type changedTools struct {
	log  *slog.Logger
	seen map[string][]catalog.Tool // the tools in the last snapshot, by server
	told map[string][]string       // the tools that were last logged as changed since the approval, by server
}

// look compares a snapshot of the registry with the previous one. It must not be called concurrently.
func (c *changedTools) look(snap *catalog.Snapshot) {
	rules, ok := snap.Rules.(*policy.Rules)
	if !ok {
		return
	}
	// What is known about servers that are gone is deleted: servers that dial in may come and go under ever new names, and a later
	// server of the same name may be a different one.
	gone := func(server string) bool {
		_, there := snap.Server(server)
		return !there
	}
	maps.DeleteFunc(c.seen, func(server string, _ []catalog.Tool) bool { return gone(server) })
	maps.DeleteFunc(c.told, func(server string, _ []string) bool { return gone(server) })
	for i := range snap.Servers {
		s := &snap.Servers[i]
		before, known := c.seen[s.Name]
		if !s.Known || known && catalog.SameTools(before, s.Tools) {
			continue
		}
		c.seen[s.Name] = s.Tools
		switch one := rules.Servers[s.Name]; {
		case one.Pin == conf.PinOff:
		case one.Approved != nil:
			_, changed, _ := Lock{s.Name: one.Approved}.Changes(s)
			if len(changed) > 0 && !slices.Equal(changed, c.told[s.Name]) {
				c.log.Warn("tools have changed since they were approved (mcpx lock)", "server", s.Name, "tools", changed)
			}
			c.told[s.Name] = changed
		default:
			c.compare(s, before)
		}
	}
}

// compare logs the tools of a server whose definitions differ from the previous ones.
func (c *changedTools) compare(s *catalog.Server, previous []catalog.Tool) {
	old := catalog.Server{}.WithTools(previous)
	for i := range s.Tools {
		now := &s.Tools[i]
		was, there := old.Tool(now.Name)
		if there && !bytes.Equal(was.Raw, now.Raw) && policy.Digest(was) != policy.Digest(now) {
			c.log.Warn("a server has changed the definition of a tool", "server", s.Name, "tool", now.Name, "changed", policy.Differences(was, now))
		}
	}
}

// Unapproved returns a message for the user that says which tools of a server differ from the approved ones. It names new tools
// only if pin is block. It returns "" if none differ, nothing is approved, or pin is off. If the lock file cannot be read, the
// message says so. s must have all tools of the server, as in the registry's snapshot.
func Unapproved(cfg *config.Config, s *catalog.Server) string {
	lock, err := LoadLock(cfg)
	if err != nil {
		return err.Error()
	}
	one := rulesOf(cfg, lock).Servers[s.Name]
	if one.Pin == conf.PinOff || one.Approved == nil {
		return ""
	}
	added, changed, _ := lock.Changes(s)
	text := ""
	if len(changed) > 0 {
		text = "changed since approved: " + strings.Join(changed, ", ")
	}
	if len(added) > 0 && one.Pin == conf.PinBlock {
		text = strings.TrimPrefix(text+"; not approved: "+strings.Join(added, ", "), "; ")
	}
	if text != "" {
		text += " (mcpx lock approves what there is now)"
	}
	return text
}
