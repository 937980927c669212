package main

// hintError is an error with a way out.
type hintError struct{ text, hint string }

func (e *hintError) Error() string { return e.text }

// Hint is what the user can do about it.
func (e *hintError) Hint() string { return e.hint }
