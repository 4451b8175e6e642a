package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
)

const (
	// EnvironmentPrefix is the start of the names of variables that set flags.
	EnvironmentPrefix = "GOSSIPNODE_"
	// MaxConfigFile bounds the size of a configuration file.
	MaxConfigFile = 1 << 20
	// ConfigFlag is the flag that names the configuration file.
	ConfigFlag = "config"
)

// TakeFile adds --config to the flags of a command.
func TakeFile(flags *pflag.FlagSet) {
	flags.String(ConfigFlag, "", "YAML file with the same keys as the flags")
}

// Resolve sets the flags that are not on the command line from the environment and the configuration file, and
// returns where each value comes from. Errors are usage errors.
func Resolve(cmd *cobra.Command) (Origins, error) {
	return ResolveFrom(cmd.Flags(), elsewhere(cmd), os.LookupEnv)
}

// ResolveFrom is Resolve with a given environment. elsewhere maps the keys of other commands to these commands.
func ResolveFrom(flags *pflag.FlagSet, elsewhere map[string]string, environment func(string) (string, bool)) (Origins, error) {
	sources := make(Origins)
	flags.Visit(func(f *pflag.Flag) { sources[f.Name] = Origin{source: FromFlag} })
	if err := fromVariables(flags, environment, sources); err != nil {
		return nil, err
	}
	path, err := flags.GetString(ConfigFlag)
	if err != nil || path == "" {
		return sources, err
	}
	text, err := files.Read(path, MaxConfigFile)
	if err != nil {
		return nil, Usagef("reading the configuration: %w", err)
	}
	entries, err := parseConfig(text)
	if err != nil {
		return nil, Usagef("reading the configuration: %s: %w", path, err)
	}
	if err := fromEntries(flags, elsewhere, path, entries, sources); err != nil {
		return nil, err
	}
	return sources, nil
}

// fromVariables sets flags from the environment; lists are separated by commas.
func fromVariables(flags *pflag.FlagSet, environment func(string) (string, bool), sources Origins) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || sources.Source(f.Name) != FromDefault {
			return
		}
		name := EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		text, ok := environment(name)
		if !ok {
			return
		}
		values := []string{text}
		if isList(f) {
			values = strings.Split(text, ",")
		}
		sources[f.Name] = Origin{fromEnvironment, "environment variable " + name}
		if err := assign(flags, f, values); err != nil {
			faults = append(faults, err)
		}
	})
	return sources.Usage(faults...)
}

// fromEntries sets flags from the entries of a configuration file.
func fromEntries(flags *pflag.FlagSet, elsewhere map[string]string, path string, entries []entry, sources Origins) error {
	var faults []error
	seen := make(map[string]bool)
	for _, e := range entries {
		f := flags.Lookup(e.key)
		var err error
		where := fmt.Sprintf("%s:%d: ", path, e.line)
		switch {
		case f == nil || f.Hidden || e.key == ConfigFlag || e.key == "help":
			err = fmt.Errorf("%sunknown key %q%s", where, e.key, hint(e.key, "", flags, elsewhere))
		case seen[e.key]:
			err = fmt.Errorf("%skey %q is there twice", where, e.key)
		case e.list && !isList(f):
			err = fmt.Errorf("%skey %q takes one value, not a list", where, e.key)
		case sources.Source(e.key) == FromDefault:
			sources[e.key] = Origin{fromFile, where + e.key}
			err = assign(flags, f, e.values)
		}
		seen[e.key] = true
		if err != nil {
			faults = append(faults, err)
		}
	}
	return sources.Usage(faults...)
}

// assign sets a flag. Setting a list for the first time replaces its default.
func assign(flags *pflag.FlagSet, f *pflag.Flag, values []string) error {
	for _, value := range values {
		if err := flags.Set(f.Name, value); err != nil {
			return Faultf(f.Name, "%s", badValue(f, value, err))
		}
	}
	return nil
}

// TextOf is the value of a flag; that of a list has commas.
func TextOf(f *pflag.Flag) string {
	if values, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(values.GetSlice(), ",")
	}
	return f.Value.String()
}

// SetText sets a flag to a text of TextOf, perhaps another member's. The value of a flag that reads a file has a
// method Take for texts that are not the name of a file.
func SetText(f *pflag.Flag, text string) error {
	if value, ok := f.Value.(interface{ Take(text string) error }); ok {
		return value.Take(text)
	}
	if values, ok := f.Value.(pflag.SliceValue); ok {
		return values.Replace(strings.FieldsFunc(text, func(r rune) bool { return r == ',' }))
	}
	return f.Value.Set(text)
}

func isList(f *pflag.Flag) bool {
	_, ok := f.Value.(pflag.SliceValue)
	return ok
}

// keysOf lists the keys that a configuration file may have.
func keysOf(flags *pflag.FlagSet) []string {
	var keys []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != ConfigFlag && f.Name != "help" {
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

// ParseMapping parses a YAML document that is one mapping, such as the example; nil if it is empty.
func ParseMapping(text []byte, example string) (*yaml.Node, error) {
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
		return nil, fmt.Errorf("line %d: want a mapping from keys to values, as in %s", root.Line, example)
	}
	return root, nil
}

// parseConfig reads YAML that is one mapping from keys to scalars or lists of scalars.
func parseConfig(text []byte) ([]entry, error) {
	root, err := ParseMapping(text, `"batch: 64"`)
	if root == nil || err != nil {
		return nil, err
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
func scalars(node *yaml.Node) (values []string, err error) {
	items := node.Content
	if node.Kind != yaml.SequenceNode {
		items = []*yaml.Node{node}
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return nil, errors.New("want a plain value or a list of them")
		}
		values = append(values, item.Value)
	}
	return values, nil
}

// Nearest returns the candidate with the smallest edit distance to word, if that is small: at most three, and for
// short words less than half of their length.
func Nearest(word string, candidates []string) (alike string, ok bool) {
	const looked, most = 64, 3 // no key is longer
	if len(word) > looked || len(candidates) == 0 {
		return "", false
	}
	alike = slices.MinFunc(candidates, func(a, b string) int { return editDistance(word, a) - editDistance(word, b) })
	return alike, editDistance(word, alike) <= min(most, (min(len(word), len(alike))-1)/2)
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

// SetAll sets flags, each to its values, and returns all faults.
func SetAll(flags *pflag.FlagSet, given map[string][]string) error {
	var faults Faults
	for _, name := range slices.Sorted(maps.Keys(given)) {
		f := flags.Lookup(name)
		if f == nil {
			faults.Add(fmt.Errorf("unknown key %q%s", name, hint(name, "", flags, nil)))
			continue
		}
		if len(given[name]) != 1 && !isList(f) {
			faults.Add(fmt.Errorf("key %q takes one value, not a list", name))
			continue
		}
		faults.Add(assign(flags, f, given[name]))
	}
	return errors.Join(faults...)
}
