package config

import "mcpx/internal/base/conf"

// These are limits for keys of the object programs: for memory (in bytes), calls and at_once. A program is JavaScript that mcpx
// runs, and that can call tools. The smallest memory is more than 0, because the JavaScript engine itself uses some.
const (
	minProgramMemory = 16e6
	maxProgramMemory = 1e9
	maxProgramCalls  = 10_000
	maxAtOnce        = 64
)

func (l *loader) programsObject(p *conf.Programs) object {
	memory := l.size(&p.Memory, minProgramMemory)
	memory = memory.andThen(func(n *node) {
		if p.Memory > maxProgramMemory {
			l.fault(n, "must be at most 1 GB")
		}
	})
	return object{name: "programs", strict: true, keys: []key{
		{"dir", l.path(&p.Dir), "the folder of the stored programs; a relative name begins at the config file. The default is `programs` beside the config file, if it is there"},
		{"timeout", l.timeout(&p.Timeout), "how long a program may take that asks for no other time"},
		{"max_timeout", l.timeout(&p.MaxTimeout), "the most time that a program may ask for"},
		{"memory", memory.takes(atStart), "how much memory a program may use, such as `\"64MB\"`"},
		{"calls", whole(l, &p.Calls, 1, maxProgramCalls), "how many calls a program may make"},
		{"at_once", whole(l, &p.AtOnce, 1, maxAtOnce), "how many of them at the same time"},
	}}
}

// programs reads the key programs, which is an object, true, or a value that turns programs off.
func (l *loader) programs(n *node) {
	switch {
	case n.kind == objectKind:
		l.members(n, l.programsObject(&l.cfg.Programs), nil)
	case n.off():
		l.cfg.Programs.Off = true
	case n.kind == boolKind:
	default:
		l.expectKind(objectKind, n)
	}
}
