package programs

// Stored is a program in a file: a tool of its own.
type Stored struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments.
	Schema string
	// Parameters is the pattern of the function's parameter.
	Parameters string
	Code       string
}
