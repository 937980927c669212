package proc

var platformModes = map[string]func(){}
