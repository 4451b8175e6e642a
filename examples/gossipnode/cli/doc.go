// Package cli has the foundations of gossipnode's commands: running and ending a command line (Root, Execute), the
// origins of settings (Resolve), errors that say what to change (Faultf, Origins.Usage), signals, the log, and
// printing.
//
// A setting is a flag, an environment variable or a line of a YAML file; the first of these that is set wins.
// Settings are declared as flags only.
//
// Limits: files of settings have at most MaxConfigFile bytes, and are one mapping from keys to values or lists of
// values. The names of variables begin with EnvironmentPrefix, and hints name gossipnode's commands.
//
// Read execute.go for how a command ends, then config.go.
package cli
