package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	// environmentPrefix is what the variables that stand for flags begin with.
	environmentPrefix = "GOSSIPNODE_"
	// maxConfigFile bounds the size of a configuration file.
	maxConfigFile = 1 << 20
	configFlag    = "config"
)

// source says where a setting comes from. A higher one hides a lower one.
type source uint8

const (
	fromDefault source = iota
	fromFile
	fromEnvironment
	fromFlag
)

// resolve fills in the flags that the command line left out, from the
// environment and the configuration file, and returns where each comes from.
// Faults are usageErrors.
func resolve(flags *pflag.FlagSet, environment func(string) (string, bool)) (map[string]source, error) {
	sources := make(map[string]source)
	flags.Visit(func(f *pflag.Flag) { sources[f.Name] = fromFlag })
	if err := fromVariables(flags, environment, sources); err != nil {
		return nil, err
	}
	path, err := flags.GetString(configFlag)
	if err != nil || path == "" {
		return sources, err
	}
	entries, err := readConfig(path)
	if err != nil {
		return nil, usageError{err}
	}
	if err := fromEntries(flags, path, entries, sources); err != nil {
		return nil, err
	}
	return sources, nil
}

// load resolves the flags of a command that takes settings. What they add up to
// is yet to be checked with validate.
func (s *settings) load(flags *pflag.FlagSet) (map[string]source, error) {
	sources, err := resolve(flags, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	return sources, s.settle(sources)
}

// settle lets --steps and --epochs, of which only one can hold, hide each other
// as a flag hides a line of the file, and refuses zeros that somebody wrote: for
// these flags zero stands for a default.
func (s *settings) settle(sources map[string]source) error {
	switch steps, epochs := sources["steps"], sources["epochs"]; {
	case steps > epochs:
		s.Epochs, sources["epochs"] = 0, fromDefault
	case epochs > steps:
		s.Steps, sources["steps"] = 0, fromDefault
	}
	for name, zero := range map[string]bool{"steps": s.Steps == 0, "epochs": s.Epochs == 0, "lr": s.LR == 0} {
		if zero && sources[name] != fromDefault {
			return usagef("--%s 0: want a positive number", name)
		}
	}
	return nil
}

// variableName is the environment variable of a flag.
func variableName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromVariables sets flags from the environment; lists are separated by commas.
func fromVariables(flags *pflag.FlagSet, environment func(string) (string, bool), sources map[string]source) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || sources[f.Name] != fromDefault {
			return
		}
		name := variableName(f.Name)
		text, ok := environment(name)
		if !ok {
			return
		}
		values := []string{text}
		if _, several := f.Value.(pflag.SliceValue); several {
			values = strings.Split(text, ",")
		}
		if err := assign(flags, f.Name, values); err != nil {
			faults = append(faults, fmt.Errorf("environment variable %s: %w", name, err))
		}
		sources[f.Name] = fromEnvironment
	})
	if len(faults) > 0 {
		return usageError{errors.Join(faults...)}
	}
	return nil
}

// fromEntries sets flags from the entries of a configuration file.
func fromEntries(flags *pflag.FlagSet, path string, entries []entry, sources map[string]source) error {
	var faults []error
	seen := make(map[string]bool)
	for _, e := range entries {
		f := flags.Lookup(e.key)
		var err error
		switch {
		case f == nil || f.Hidden || e.key == configFlag || e.key == "help":
			err = fmt.Errorf("unknown key %q: did you mean %q?", e.key, nearest(e.key, keysOf(flags)))
		case seen[e.key]:
			err = fmt.Errorf("key %q is there twice", e.key)
		case e.list && !isList(f):
			err = fmt.Errorf("key %q takes one value, not a list", e.key)
		case sources[e.key] == fromDefault:
			err = assign(flags, e.key, e.values)
			sources[e.key] = fromFile
		}
		seen[e.key] = true
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", path, e.line, err))
		}
	}
	if len(faults) > 0 {
		return usageError{errors.Join(faults...)}
	}
	return nil
}

// assign sets a flag. Setting a list for the first time replaces its default.
func assign(flags *pflag.FlagSet, name string, values []string) error {
	for _, value := range values {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func isList(f *pflag.Flag) bool {
	_, ok := f.Value.(pflag.SliceValue)
	return ok
}

// keysOf lists the keys that a configuration file may have.
func keysOf(flags *pflag.FlagSet) []string {
	var keys []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != configFlag && f.Name != "help" {
			keys = append(keys, f.Name)
		}
	})
	return keys
}

// entry is one key of a configuration file with the text of its values.
type entry struct {
	key    string
	values []string
	list   bool
	line   int
}

// readConfig reads a YAML file that holds one mapping from keys to scalars or
// lists of scalars.
func readConfig(path string) ([]entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxConfigFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(text) > maxConfigFile {
		return nil, fmt.Errorf("reading the configuration: %s has more than %d bytes", path, maxConfigFile)
	}
	entries, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %s: %w", path, err)
	}
	return entries, nil
}

func parseConfig(text []byte) ([]entry, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document")
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want a mapping from keys to values, as in \"batch: 64\"", root.Line)
	}
	var entries []entry
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		values, err := scalars(value)
		if err != nil {
			return nil, fmt.Errorf("line %d: key %q: %w", value.Line, key.Value, err)
		}
		entries = append(entries, entry{key: key.Value, values: values, list: value.Kind == yaml.SequenceNode, line: key.Line})
	}
	return entries, nil
}

// scalars is the text of a scalar, or of each item of a list of them.
func scalars(node *yaml.Node) ([]string, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag != "!!null":
		return []string{node.Value}, nil
	case node.Kind == yaml.SequenceNode:
		var values []string
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return nil, errors.New("want a list of plain values")
			}
			values = append(values, item.Value)
		}
		return values, nil
	}
	return nil, errors.New("want a plain value or a list of them")
}

// nearest is the candidate that takes the fewest edits to become word.
func nearest(word string, candidates []string) string {
	const looked = 64 // no key is longer
	word = word[:min(len(word), looked)]
	return slices.MinFunc(candidates, func(a, b string) int { return editDistance(word, a) - editDistance(word, b) })
}

// editDistance counts the insertions, deletions and replacements of bytes that
// turn a into b (Levenshtein, 1966).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
