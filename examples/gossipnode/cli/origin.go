package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Source says where a setting comes from. A higher source overrides a lower one.
type Source uint8

// Sources, the lowest first.
const (
	FromDefault Source = iota
	fromFile
	fromEnvironment
	FromFlag
)

// Origin is a source and, for files and the environment, the place in it.
type Origin struct {
	source Source
	place  string
}

// Origins has the origin of each flag's value; a default has none.
type Origins map[string]Origin

// Source is the source of a flag's value.
func (o Origins) Source(flag string) Source { return o[flag].source }

// Name is the place where a user can change a setting.
func (o Origins) Name(flag string) string {
	if place := o[flag].place; place != "" {
		return place
	}
	return "--" + flag
}

// Usage joins faults, if there are any, into a usage error that names the origin of each value.
func (o Origins) Usage(faults ...error) error {
	for i, err := range faults {
		var one *fault
		if errors.As(err, &one) {
			faults[i] = &fault{flag: one.flag, text: one.text, where: o.Name(one.flag)}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return Usage(err)
	}
	return nil
}

// flagFault rewrites pflag's errors about a command line in plain words.
func flagFault(cmd *cobra.Command, err error) error {
	var (
		invalid *pflag.InvalidValueError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.Is(err, pflag.ErrHelp): // due to --help-all
		return err
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		err = Faultf(f.Name, "%s", badValue(f, invalid.GetValue(), err))
	case errors.As(err, &unknown):
		err = fmt.Errorf("%w%s", err, hint(unknown.GetSpecifiedName(), "--", cmd.Flags(), elsewhere(cmd)))
	}
	return Usage(err)
}

// elsewhere maps the keys of the other commands to those commands.
func elsewhere(cmd *cobra.Command) map[string]string {
	owners := make(map[string][]string)
	for _, other := range cmd.Root().Commands() {
		if other == cmd {
			continue
		}
		for _, key := range keysOf(other.Flags()) {
			owners[key] = append(owners[key], other.Name())
		}
	}
	others := make(map[string]string, len(owners))
	for key, names := range owners {
		others[key] = List(names)
	}
	return others
}

// hint suggests a correction for an unknown key: the command that it belongs to, or a similar key. mark comes before
// a key.
func hint(key, mark string, flags *pflag.FlagSet, elsewhere map[string]string) string {
	if command, ok := elsewhere[key]; ok {
		return fmt.Sprintf(": it belongs to gossipnode %s", command)
	}
	if alike, ok := Nearest(key, keysOf(flags)); ok {
		return fmt.Sprintf(": did you mean %q?", mark+alike)
	}
	return ""
}
