package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// source says where a setting comes from. A higher one hides a lower one.
type source uint8

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromFlag
)

// origin is a source and, for files and the environment, the place in it.
type origin struct {
	source source
	place  string
}

// origins tells for each flag where its value comes from: nowhere for a default.
type origins map[string]origin

func (o origins) source(flag string) source { return o[flag].source }

// name is what a user has to look at to change a setting.
func (o origins) name(flag string) string {
	if place := o[flag].place; place != "" {
		return place
	}
	return "--" + flag
}

// fault is what is wrong with the value of one flag.
type fault struct {
	flag, text string
	where      string // the flag, if empty
}

func (f *fault) Error() string {
	if f.where == "" {
		return "--" + f.flag + " " + f.text
	}
	return f.where + " " + f.text
}

func faultf(flag, format string, args ...any) error {
	return &fault{flag: flag, text: fmt.Sprintf(format, args...)}
}

// usage is a usageError of faults, if there are any, with where each comes from.
func (o origins) usage(faults ...error) error {
	for i, err := range faults {
		var one *fault
		if errors.As(err, &one) {
			faults[i] = &fault{flag: one.flag, text: one.text, where: o.name(one.flag)}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return usageError{err}
	}
	return nil
}

// badValue says what a flag wants whose value could not be read.
func badValue(f *pflag.Flag, value string, cause error) string {
	if errors.Is(cause, strconv.ErrRange) {
		return fmt.Sprintf("%q: too large a number", value)
	}
	want := f.Value.Type()
	switch want {
	case "int":
		want = "a whole number"
	case "uint64":
		want = "a whole number that is not negative"
	case "float64":
		want = "a number"
	case "duration":
		want = "a time, as in 30s or 5m"
	case "bool":
		want = "true or false"
	}
	return fmt.Sprintf("%q: want %s", value, want)
}

// flagFault makes plain what pflag says of a command line.
func flagFault(cmd *cobra.Command, err error) error {
	var (
		invalid *pflag.InvalidValueError
		unknown *pflag.NotExistError
	)
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		err = faultf(f.Name, "%s", badValue(f, invalid.GetValue(), err))
	case errors.As(err, &unknown):
		err = fmt.Errorf("%w%s", err, hint(unknown.GetSpecifiedName(), "--", cmd.Flags(), elsewhere(cmd)))
	}
	return usageError{err}
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
		others[key] = list(names)
	}
	return others
}

// hint is what may help who gave an unknown key: the command that it belongs to,
// or one that is alike. Mark goes before a key.
func hint(key, mark string, flags *pflag.FlagSet, elsewhere map[string]string) string {
	if command, ok := elsewhere[key]; ok {
		return fmt.Sprintf(": it belongs to gossipnode %s", command)
	}
	if alike, ok := nearest(key, keysOf(flags)); ok {
		return fmt.Sprintf(": did you mean %q?", mark+alike)
	}
	return ""
}
