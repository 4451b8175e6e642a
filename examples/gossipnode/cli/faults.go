package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"
)

// coded is an error that ends the program with a code of its own.
type coded struct {
	error
	code int
}

func (e coded) Unwrap() error { return e.error }

// ExitWith is the code.
func (e coded) ExitWith() int { return e.code }

// Coded gives err an exit code, at least that of a failure.
func Coded(err error, code int) error { return coded{err, max(code, ExitFailed)} }

// Usage makes a usage error of err: the command line, the environment or the configuration file is wrong, and the
// user must change it.
func Usage(err error) error { return coded{err, ExitUsage} }

// Usagef makes a usage error of a message, which may wrap an error with %w.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Config makes a configuration error of err, which another start does not repair. An error with its own exit code
// stays as it is, and so does an error that may pass.
func Config(err error) error {
	passes := func(cause error) bool { return errors.Is(err, cause) }
	if err == nil || errors.As(err, new(interface{ ExitWith() int })) || slices.ContainsFunc(transient, passes) {
		return err
	}
	return coded{err, ExitConfig}
}

// ConfigOf is Config if err is one of the causes, else err.
func ConfigOf(err error, causes ...error) error {
	if slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) }) {
		return Config(err)
	}
	return err
}

// transient has the errors that may pass by themselves: another process with the same address may be about to end, or
// one that has filled the disk or opened too many files.
var transient = []error{
	syscall.EADDRINUSE, syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, context.Canceled, context.DeadlineExceeded,
}

// fault is an error in the value of one flag.
type fault struct {
	flag, text string
	where      string // the flag, if where is empty
}

func (f *fault) Error() string {
	if f.where == "" {
		return "--" + f.flag + " " + f.text
	}
	return f.where + " " + f.text
}

// Faultf makes an error about the value of a flag. Origins.Usage turns it into a usage error that names the origin of
// the value.
func Faultf(flag, format string, args ...any) error {
	return &fault{flag: flag, text: fmt.Sprintf(format, args...)}
}

// FileType is the type of a flag whose value is the name of a file. The file is read when the flag is set, and its
// errors need no explanation.
const FileType = "FILE"

// badValue says which values a flag takes, after a value that could not be parsed.
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
	case FileType:
		if invalid, is := errors.AsType[*pflag.InvalidValueError](cause); is {
			cause = invalid.Unwrap()
		}
		return fmt.Sprintf("%q: %v", value, cause)
	}
	return fmt.Sprintf("%q: want %s", value, want)
}

// Unwritable returns an error if the file of a flag, to be written at the end of hours perhaps, cannot be made.
func Unwritable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Faultf(flag, "%s is a folder: give a file", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".probe-*")
	if err != nil {
		return Faultf(flag, "no file can be made in %s (%v): make that folder, or give another", filepath.Dir(path), errors.Unwrap(err))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Within returns an error if value is not from least to most.
func Within(flag string, value, least, most int) error {
	if value < least || value > most {
		return Faultf(flag, "%d: want %d to %d", value, least, most)
	}
	return nil
}

// OneOf returns an error if value is not a known one.
func OneOf(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return Faultf(flag, "%q: want %s", value, List(known))
}

// Faults collects errors in flags.
type Faults []error

// If adds an error in the value of a flag if wrong is true.
func (f *Faults) If(wrong bool, flag, format string, args ...any) {
	if wrong {
		*f = append(*f, Faultf(flag, format, args...))
	}
}

// Add adds errors that are not nil.
func (f *Faults) Add(errs ...error) {
	for _, err := range errs {
		if err != nil {
			*f = append(*f, err)
		}
	}
}
