package app

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
	"mcpx/internal/executor"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// registryOptions returns the options of the registry that come from the config. A reload can change all but Patience.
func registryOptions(cfg *config.Config, rules *policy.Rules) registry.Options {
	return registry.Options{
		Rules: rules, MaxConcurrency: cfg.MaxConcurrency, Queue: cfg.Limits.All.Queue,
		Grace: max(cfg.ShutdownGrace, time.Millisecond), Patience: cfg.StartupWait,
	}
}

func (b *builder) callOptions(cfg *config.Config) executor.Options {
	forms, _ := formsOf(cfg)
	options := executor.Options{
		Servers:       make(map[string]executor.ServerOptions),
		ExecWait:      wait(cfg.ExecWait),
		ExecWaitSet:   cfg.ExecWaitSet,
		ResultTokens:  cfg.ResultTokenLimit,
		PreviewTokens: cfg.ResultPreviewTokens,
		Filter:        b.filters,
		Record:        cfg.UI.Shown && cfg.UI.RecordCalls && (b.profile.page || b.origin.History != nil),
		ProgramOptions: executor.ProgramOptions{
			Programs: b.programsOf(cfg), Runner: b.runner,
		},
		TOON:         forms&conf.FormTOON != 0,
		JS:           forms&conf.FormJS != 0,
		TypeScript:   cfg.SchemaCompression,
		OfferOptions: executor.OfferOptions{NoResources: !cfg.Resources, NoPrompts: !cfg.Prompts, Separator: cfg.Separator},
		LearnOptions: executor.LearnOptions{Learn: cfg.Learns()},
		Files:        executor.FileOptions{Folders: cfg.Files, Roots: b.profile.oneClient, Shared: cfg.Auth != nil},
	}
	for _, s := range cfg.Servers {
		options.Servers[s.Name] = executor.ServerOptions{
			Unchecked: s.Validate == "off", Verbatim: s.Verbatim,
			CallTimeout: s.CallTimeout, IdleTimeout: s.IdleTimeout, ToolTimeouts: s.ToolTimeouts,
		}
	}
	return options
}

// formsOf returns the formats in which clients get structured results (such as JSON or TOON), and the rules for single clients. If
// toon_compression_enabled is false, all clients get JSON, whatever their rules say.
func formsOf(cfg *config.Config) (conf.ResultForms, []conf.ClientRule) {
	if cfg.ToonCompression {
		return cfg.ResultForms, cfg.Clients
	}
	clients := slices.Clone(cfg.Clients)
	for i := range clients {
		clients[i].Forms = conf.FormJSON
	}
	return conf.FormJSON, clients
}

func viewOptions(cfg *config.Config, name string) view.Options {
	part, native := scopeOf(cfg, name)
	naming := view.Naming{Separator: cfg.Separator, Prefix: cfg.Prefix}
	if strings.HasPrefix(name, config.ViewServer) {
		naming.Prefix, naming.Transparent = view.PrefixNever, true
	}
	if name == viewAgent { // clients of agents see the names that the agent's servers gave
		naming.Prefix = view.PrefixNever
	}
	budget := cfg.CatalogueTokenBudget
	if g := cfg.Group(strings.TrimPrefix(name, config.ViewGroup)); g != nil && strings.HasPrefix(name, config.ViewGroup) {
		budget = cmp.Or(g.CatalogueTokenBudget, budget)
	}
	forms, clients := formsOf(cfg)
	return view.Options{
		Name:           name,
		Scope:          part,
		Naming:         naming,
		Untouched:      !cfg.Compress || name == viewAgent,
		BudgetTokens:   budget,
		BudgetChars:    cfg.CatalogueCharLimit,
		MaxDescription: MaxDescription(cfg),
		JSONSchema:     !cfg.SchemaCompression,
		Forms:          forms,
		ShortNames:     cfg.ShortArgumentNames,
		ReadDoor:       cfg.ReadDoor,
		Apps:           cfg.Apps || native,
		Structured:     cfg.StructuredContent,
		Clients:        clients,
		NeverCut:       cfg.ResultTokenLimit == 0,
		StartupWait:    wait(cfg.StartupWait),
	}
}

// wait converts a waiting time from the config to the option of another package. In the config, 0 means not to wait at all; in the option,
// 0 means the default. So wait returns 1 ns for 0.
func wait(d time.Duration) time.Duration { return max(d, 1) }

// MaxDescription converts the config key max_description_len, in characters, to the option of another package. In the config, 0 means no
// limit; in the option, 0 means the default. So MaxDescription returns a very large number for 0.
func MaxDescription(cfg *config.Config) int {
	if cfg.MaxDescriptionLen == 0 {
		return math.MaxInt32
	}
	return cfg.MaxDescriptionLen
}

// These limits of one principal cannot be set in the config. All clients without a principal share the limits of one principal.
const (
	paceOfOne     = 5_000   // requests per second; further requests have to wait
	bodyPaceOfOne = 4 << 20 // bytes per second of large bodies; further bytes have to wait
	bodies        = 4       // how many messages of max_message_bytes may be sent at once
	// leastAnswers is how many bytes of large answers may always wait until clients have read them. Without this minimum, and with
	// a small max_message_bytes, the answers to a few calls at the same time would get lost.
	leastAnswers = 64 << 20
)

// limitsOf returns the limits of a config, completed by the limits above, which the config cannot set.
func limitsOf(cfg *config.Config) conf.Limits {
	options := cfg.Limits
	options.Principal.BodyBytes = bodies * cfg.MaxMessageBytes
	options.Principal.AnswerBytes = max(options.Principal.BodyBytes, leastAnswers)
	options.Anybody.BodyBytes, options.Anybody.AnswerBytes = options.Principal.BodyBytes, options.Principal.AnswerBytes
	options.Principal.Pace, options.Principal.BodyPace = paceOfOne, bodyPaceOfOne
	return options
}
