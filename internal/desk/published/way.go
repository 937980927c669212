package published

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/setup"
)

// These are the values of [Way.Kind].
const (
	NPM          = "npm"
	PyPI         = "pypi"
	OCI          = "oci"
	RemoteServer = "remote"
)

// Way is one way to start or reach a server: a package of one kind, or a remote address.
type Way struct {
	Kind string
	// Runner is the program that starts the package (npx, uvx or docker); empty for a remote server.
	Runner string

	pkg    *Package
	remote *Remote
}

// Ask describes a value that a [Way] takes and that mcpx asks the user for. Some values are optional.
type Ask struct {
	Name, Description, Default string
	Choices                    []string
	Required, Secret           bool
	Path                       bool // a file or folder
}

var (
	npmName = pattern.New(`^(@[A-Za-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*$`)
	pyName  = pattern.New(`^[A-Za-z0-9][\w.-]*(\[[\w.,-]+\])?$`)
	ociName = pattern.New(`^[A-Za-z0-9][\w./:@-]*$`)
	version = pattern.New(`^\w[\w.+!-]*$`)
)

// kinds says for each kind of package which program starts it, and which identifiers are valid. An identifier must not look
// like an option of that program.
var kinds = map[string]struct {
	runner string
	name   *pattern.Lazy
}{
	NPM: {"npx", npmName}, PyPI: {"uvx", pyName}, OCI: {"docker", ociName},
}

// Ways returns the ways to start or reach the server: first packages, then remote addresses, each in the order of the registry. If
// mcpx cannot use a way, unusable has a text that names the way and the reason.
func (s *Server) Ways() (ways []Way, unusable []string) {
	for i := range s.Packages {
		p := &s.Packages[i]
		kind, known := kinds[p.RegistryType]
		why := ""
		switch {
		case !known:
			why = "mcpx starts packages of npm, PyPI and OCI"
		case p.Transport.Type != "" && p.Transport.Type != "stdio":
			why = "it serves " + p.Transport.Type + ", and has to be started by hand"
		case !kind.name.MatchString(p.Identifier) || p.Version != "" && !version.MatchString(p.Version):
			why = "its name or version is not one of " + p.RegistryType
		case p.RegistryType != OCI && len(p.RuntimeArguments) > 0 && cmp.Or(p.RuntimeHint, kind.runner) != kind.runner:
			why = "its arguments are for " + p.RuntimeHint
		default:
			why = whyUnusable(slices.Concat(p.RuntimeArguments, p.PackageArguments, p.EnvironmentVariables))
		}
		if why != "" {
			unusable = append(unusable, sanitize.Line(p.RegistryType+" "+p.Identifier+": "+why, 200))
			continue
		}
		ways = append(ways, Way{Kind: p.RegistryType, Runner: kind.runner, pkg: p})
	}
	for i := range s.Remotes {
		r := &s.Remotes[i]
		u, err := url.Parse(r.URL)
		why := whyUnusable(append(slices.Collect(maps.Values(r.Variables)), r.Headers...))
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || strings.Contains(r.URL, "${") {
			why = "its URL is none of http"
		}
		if r.Type != "streamable-http" && r.Type != "sse" {
			why = "mcpx reaches servers over streamable-http and sse"
		}
		if why != "" {
			unusable = append(unusable, sanitize.Line("remote "+r.URL+": "+why, 200))
			continue
		}
		ways = append(ways, Way{Kind: RemoteServer, remote: r})
	}
	return ways, unusable
}

// whyUnusable returns the reason why mcpx must not use a way with these inputs, or "" if it may. The texts of the registry must
// not contain references such as ${keyring:NAME}: mcpx would replace them by a secret of the user, which the server would then
// get.
func whyUnusable(inputs []Input) string {
	for _, in := range inputs {
		if strings.Contains(in.Name+in.Value+in.Default+in.ValueHint, "${") {
			return "it names variables of mcpx's config (${…})"
		}
		if why := whyUnusable(slices.Collect(maps.Values(in.Variables))); why != "" {
			return why
		}
	}
	return ""
}

// inputs returns all inputs of the way. The URL of a remote server is an input called url.
func (w Way) inputs() (all []Input) {
	if w.remote == nil {
		return slices.Concat(w.pkg.RuntimeArguments, w.pkg.PackageArguments, w.pkg.EnvironmentVariables)
	}
	return append([]Input{{Name: "url", Value: w.remote.URL, Variables: w.remote.Variables, IsRequired: true}}, w.remote.Headers...)
}

// Asks returns the values that the user may give, the required ones first.
func (w Way) Asks() (asks []Ask) {
	add := func(name string, in, of Input) {
		if name == "" || slices.ContainsFunc(asks, func(a Ask) bool { return a.Name == name }) {
			return
		}
		asks = append(asks, Ask{
			Name: name, Description: sanitize.Line(in.Description, 200), Default: in.Default, Choices: in.Choices,
			Required: in.IsRequired || of.IsRequired, Secret: in.IsSecret || of.IsSecret,
			Path: in.Format == "filepath",
		})
	}
	for _, in := range w.inputs() {
		if in.fixedValue() == "" {
			add(in.label(), in, in)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(in.Variables)) {
			if one := in.Variables[name]; one.Value == "" && strings.Contains(in.fixedValue(), "{"+name+"}") {
				add(name, one, in)
			}
		}
	}
	slices.SortStableFunc(asks, func(a, b Ask) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return asks
}

// label returns the name by which the user gives the value of an input.
func (in Input) label() string {
	return cmp.Or(strings.TrimLeft(in.Name, "-"), in.ValueHint, "argument")
}

// fixedValue returns the value that the registry sets for an input, or "" if the user gives the value. In older entries
// ValueHint has the value of a fixed argument.
func (in Input) fixedValue() string {
	if in.IsFixed {
		return cmp.Or(in.Value, in.ValueHint)
	}
	return in.Value
}

// value returns the value of an input. The parameter values has the values from the user, by their names. If the input, or a
// {variable} in it, has no value, ok is false.
func (in Input) value(values map[string]string) (text string, ok bool) {
	text = in.fixedValue()
	if text == "" {
		text, ok = values[in.label()]
		if !ok && in.IsRequired {
			text = in.Default
		}
		return text, text != ""
	}
	for name, one := range in.Variables {
		hole := "{" + name + "}"
		if !strings.Contains(text, hole) {
			continue
		}
		value := cmp.Or(values[name], one.Value, one.Default)
		if value == "" {
			return "", false
		}
		text = strings.ReplaceAll(text, hole, value)
	}
	return text, true
}

// words returns arguments as the words of a command line. It leaves out arguments that have no value, except flags, which need
// none.
func words(arguments []Input, values map[string]string) (all []string) {
	for _, in := range arguments {
		value, ok := in.value(values)
		switch {
		case in.Type == "named" && ok && in.Format == "boolean":
			if value == "true" {
				all = append(all, in.Name)
			}
		case in.Type == "named" && ok:
			all = append(all, in.Name, value)
		case in.Type == "named" && in.IsRequired && in.Value == "" && in.Default == "" && in.Description == "":
			all = append(all, in.Name) // a flag without a value
		case ok:
			all = append(all, value)
		}
	}
	return all
}

// Entry returns the server's entry for mcpx's config, with the values from the user. Its error names a required value that is
// missing and has no default, or a value that is not one of the choices.
func (w Way) Entry(values map[string]string) (setup.Entry, error) {
	for _, ask := range w.Asks() {
		value, ok := values[ask.Name]
		if ask.Required && !ok && ask.Default == "" {
			return setup.Entry{}, fmt.Errorf("%s needs a value", ask.Name)
		}
		if ok && len(ask.Choices) > 0 && !slices.Contains(ask.Choices, value) {
			return setup.Entry{}, fmt.Errorf("%s must be one of %s", ask.Name, strings.Join(ask.Choices, ", "))
		}
	}
	if w.remote != nil {
		return w.remoteEntry(values), nil
	}
	p, env := w.pkg, map[string]string{}
	for _, in := range p.EnvironmentVariables {
		if value, ok := in.value(values); ok {
			env[in.Name] = value
		}
	}
	args := words(p.RuntimeArguments, values)
	switch {
	case p.RegistryType == OCI:
		args = p.container(args, env)
	case slices.Contains(args, "--from") || slices.Contains(args, p.Identifier): // the arguments already name the package
	default:
		if p.RegistryType == NPM && !slices.Contains(args, "-y") {
			args = append(args, "-y") // without -y, npx would ask on stdin, which carries the protocol
		}
		args = append(args, p.pinned())
	}
	return setup.Entry{Command: w.Runner, Args: append(args, words(p.PackageArguments, values)...), Env: env}, nil
}

// container returns the arguments of docker up to the image. It moves the values of options -e and --env into env, from which
// docker takes them, because other users of the machine can see arguments.
func (p *Package) container(runtime []string, env map[string]string) []string {
	image := p.image()
	bare := image
	if at := strings.LastIndexAny(image, ":@"); at > strings.LastIndexByte(image, '/') {
		bare = image[:at]
	}
	args := []string{"run", "-i", "--rm"}
	for i := 0; i < len(runtime); i++ {
		word := runtime[i]
		switch {
		case slices.Contains([]string{"run", "-i", "--interactive", "--rm", image, bare, p.Identifier}, word): // args already has these words
		case (word == "-e" || word == "--env") && i+1 < len(runtime):
			i++
			name, value, valued := strings.Cut(runtime[i], "=")
			if valued {
				env[name] = value
			}
		default:
			args = append(args, word)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		args = append(args, "-e", name)
	}
	return append(args, image)
}

// pinned returns the package's identifier with the version that the registry lists, if it lists one.
func (p *Package) pinned() string {
	if p.Version == "" {
		return p.Identifier
	}
	return p.Identifier + "@" + p.Version
}

// image returns the full name of the image. Older entries lack the host and the tag.
func (p *Package) image() string {
	image := p.Identifier
	if u, err := url.Parse(p.RegistryBaseURL); err == nil && u.Host != "" && !strings.HasSuffix(u.Host, "docker.io") {
		if host, _, _ := strings.Cut(image, "/"); !strings.Contains(host, ".") {
			image = u.Host + "/" + image
		}
	}
	if last := image[strings.LastIndexByte(image, '/')+1:]; p.Version != "" && !strings.ContainsAny(last, ":@") {
		image += ":" + p.Version
	}
	return image
}

func (w Way) remoteEntry(values map[string]string) setup.Entry {
	e := setup.Entry{Type: "http", Headers: map[string]string{}}
	if w.remote.Type == "sse" {
		e.Type = "sse"
	}
	e.URL, _ = w.inputs()[0].value(values)
	for _, in := range w.remote.Headers {
		if value, ok := in.value(values); ok {
			e.Headers[in.Name] = value
		}
	}
	return e
}
