// Package cli is the ground that gossipnode's commands stand on: how a command line is
// carried out and ends (Root, Execute), where settings come from (Resolve), how faults
// name what has to be written otherwise (Faultf, Origins.Usage), signals, the log, and
// what is printed.
//
// A setting is a flag, an environment variable or a line of a YAML file, and the first
// of these that has it wins; the flags are the only place where settings are declared.
//
// Limits: files of settings have at most MaxConfigFile bytes and hold one mapping from
// keys to values or lists of values; the names of variables begin with
// EnvironmentPrefix, and hints name gossipnode's commands.
//
// Read execute.go for what a command ends with, then config.go.
package cli
