package app

import (
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/limits"
)

// The bounds of one principal that no key says.
const (
	paceOfOne     = 5_000   // requests a second go on at once
	bodyPaceOfOne = 4 << 20 // bytes of large bodies a second
	bodies        = 4       // messages of max_message_bytes at once
)

// limitsOf are the limits of a config. Without auth all requests are of one principal, anybody.
func limitsOf(cfg *config.Config) limits.Options {
	options := cfg.Limits
	options.Principal.BodyBytes = bodies * cfg.MaxMessageBytes
	options.Anybody.BodyBytes = options.Principal.BodyBytes
	options.Principal.Pace, options.Principal.BodyPace = paceOfOne, bodyPaceOfOne
	return options
}
