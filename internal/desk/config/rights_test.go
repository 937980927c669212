package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
)

// TestRights: the rules in auth.rights are read. Nothing in a rule is ignored that could restrict it: null, an unknown key, and
// most empty lists are faults.
func TestRights(t *testing.T) {
	parse := func(rights string) (*Config, error) {
		return Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {"my git": {"command": "x"}, "mail": {"command": "x"}},
			"auth": {"tokens": {"ci": {"sha256": "%s"}}, "rights": %s}}`, digestOf("a"), rights), Options{})
	}
	for rights, want := range map[string][]conf.Right{
		`[]`:                                     {},
		`[{"principals": ["*"]}]`:                {{Principals: []string{"*"}}},
		`[{"principals": ["*"], "admin": null}]`: {{Principals: []string{"*"}}}, // admin restricts nothing, so null is no fault
		`[{"principals": ["ci-*"], "groups": ["dev"], "scopes": ["x"], "servers": ["my git", "m*"], "tools": {"allow": ["my git.get_*"], "deny": ["*.rm"]},
			"read_only": true, "views": ["groups/*"], "confirm": "all", "admin": true, "//": "a note"}, {"groups": ["ops"], "servers": []}]`: {
			{Principals: []string{"ci-*"}, Groups: []string{"dev"}, Scopes: []string{"x"}, Servers: []string{"my git", "m*"},
				Allow: []string{"my git.get_*"}, Deny: []string{"*.rm"}, ReadOnly: true, Views: []string{"groups/*"}, Confirm: conf.ConfirmAll, Admin: true},
			{Groups: []string{"ops"}, Servers: []string{}},
		},
		`[{"principals": ["*"]}, {"groups": ["left"], "deny": ["my git", "mail.send*"]}]`: {
			{Principals: []string{"*"}}, {Groups: []string{"left"}, TakeAway: []string{"my git", "mail.send*"}},
		},
	} {
		c, err := parse(rights)
		if err != nil || !reflect.DeepEqual(c.Auth.Rights, want) {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v", rights, c, err, want)
		}
	}
	for rights, want := range map[string]string{
		`null`:                                                             ": must not be null",
		`[{"deny": ["mail"]}]`:                                             "[0]: applies to no principal",
		`[{"principals": ["*"], "deny": []}]`:                              "[0].deny: must not be empty",
		`[{"principals": ["*"], "deny": null}]`:                            "[0].deny: must not be null",
		`[{"principals": ["*"], "deny": ["[mail"]}]`:                       "[0].deny[0]",
		`[{"principals": ["*"], "servers": [], "deny": ["mail"]}]`:         "[0].deny: a rule with deny gives nothing",
		`[{"principals": ["*"], "admin": true, "deny": ["mail"]}]`:         "[0].deny: a rule with deny gives nothing",
		`[{"principals": ["*"], "views": ["tools"], "deny": ["mail"]}]`:    "[0].deny: a rule with deny gives nothing",
		`[{"principals": ["*"], "confirm": "all", "deny": ["mail.send"]}]`: "[0].deny: a rule with deny gives nothing",
		`[{"principals": ["*"], "servers": null}]`:                         "[0].servers: must not be null",
		`[{"principals": null, "groups": ["a"]}]`:                          "[0].principals: must not be null",
		`[{"principals": ["*"], "groups": null}]`:                          "[0].groups: must not be null",
		`[{"principals": ["*"], "scopes": null}]`:                          "[0].scopes: must not be null",
		`[{"principals": ["*"], "tools": null}]`:                           "[0].tools: must not be null",
		`[{"principals": ["*"], "tools": {"allow":null}}]`:                 "[0].tools.allow: must not be null",
		`[{"principals": ["*"], "tools": {"deny":null}}]`:                  "[0].tools.deny: must not be null",
		`[{"principals": ["*"], "read_only": null}]`:                       "[0].read_only: must not be null",
		`[{"principals": ["*"], "views": null}]`:                           "[0].views: must not be null",
		`[{"principals": ["*"], "confirm": null}]`:                         "[0].confirm: must not be null",
		`{}`:                      ": must be an array, not an object",
		`["ci"]`:                  "[0]: must be an object, not a string",
		`[{}]`:                    "[0]: applies to no principal",
		`[{"servers": ["mail"]}]`: "[0]: applies to no principal",
		`[{"principals": []}]`:    "[0].principals: must not be empty",
		`[{"groups": []}]`:        "[0].groups: must not be empty",
		`[{"groups": [""]}]`:      "[0].groups[0]: must not be empty",
		`[{"principals": ["["]}]`: "[0].principals[0]: is not a valid pattern",
		`[{"principals": ["*"], "server": ["mail"]}]`:              "[0].server: unknown key",
		`[{"principals": ["*"], "readonly": true}]`:                "[0].readonly: unknown key",
		`[{"principals": ["*"], "tools": {"allow": []}}]`:          "[0].tools.allow: must not be empty",
		`[{"principals": ["*"], "tools": {"allow": ["read"]}}]`:    `[0].tools.allow[0]: must be "SERVER.TOOL"`,
		`[{"principals": ["*"], "tools": {"denied": ["mail.*"]}}]`: "[0].tools.denied: unknown key",
		`[{"principals": ["*"], "confirm": "maybe"}]`:              "[0].confirm: must be",
		`[{"principals": ["*"], "admin": "yes"}]`:                  "[0].admin: must be true or false",
	} {
		_, err := parse(rights)
		if err == nil || !strings.Contains(err.Error(), "auth.rights"+want) {
			t.Errorf("%s\ngot  %v\nwant auth.rights%s", rights, err, want)
		}
	}
}
