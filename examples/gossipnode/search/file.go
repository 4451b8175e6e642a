package search

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/search"
)

// The methods of a search.
const (
	asha   = "asha"
	random = "random"
	grid   = "grid"
)

const (
	maxFile         = 1 << 20
	defaultPoints   = 5
	maxPoints       = 100 // of a range in a grid
	defaultSettings = 16
	maxSaid         = 8 // faults of trials that are told
)

// file is a file of a search.
type file struct {
	Run, Fit, World  map[string]texts
	Space            map[string]ranged
	Method           string
	Settings, Points int
	Steps, Least     int
	Reduce, Members  int
	Seed             uint64
}

// texts are the values of a flag.
type texts []string

// UnmarshalYAML takes a value, or a list of them.
func (t *texts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode((*[]string)(t))
	}
	*t = texts{""}
	return node.Decode(&(*t)[0])
}

// ranged is a parameter: one of its fields is given.
type ranged struct {
	Log, Linear []float64
	Choice      texts
}

// parameter is the range of a flag.
func (r ranged) parameter(name string, of *pflag.Flag) (p search.Parameter, err error) {
	p = search.Parameter{Name: name, Kind: search.Choice, Choices: r.Choice}
	given := 0
	for kind, list := range map[search.Kind][]float64{search.Log: r.Log, search.Linear: r.Linear} {
		if list == nil {
			continue
		}
		if given++; len(list) != 2 {
			return p, fmt.Errorf("%d numbers: want [LOW, HIGH]", len(list))
		}
		p.Kind, p.Low, p.High = kind, list[0], list[1]
		p.Whole = slices.Contains([]string{"int", "uint64"}, of.Value.Type())
		if !p.Whole && of.Value.Type() != "float64" {
			return p, fmt.Errorf("is no number: want {choice: [...]}")
		}
	}
	if r.Choice != nil {
		given++
	}
	if given != 1 {
		return p, errors.New("want {log: [LOW, HIGH]}, {linear: [LOW, HIGH]} or {choice: [...]}")
	}
	return p, nil
}

// sought is what a file asks for.
type sought struct {
	file
	space  search.Space
	list   []search.Setting
	config search.Config
	subject
}

// read reads a file, and returns all its faults at once. Data is this member's instead of the file's, "" for the file's.
func read(path, data string) (s *sought, err error) {
	text, err := files.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	if _, err := cli.ParseMapping(text, `"space: {lr: {log: [0.001, 1]}}"`); err != nil {
		return nil, err
	}
	s = new(sought)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&s.file); err != nil && !errors.Is(err, io.EOF) {
		text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "not found in type search.file", "is not known here")
		return nil, errors.New(strings.ReplaceAll(text, "not found in type search.ranged", "is no kind of range: want log, linear or choice"))
	}
	if data != "" {
		s.given()["data"] = texts{data}
	}
	return s, errors.Join(append(s.settle(), s.tryAll())...)
}

// given are the flags of what is trained.
func (s *sought) given() map[string]texts {
	if s.Fit != nil {
		return s.Fit
	}
	if s.Run == nil {
		s.Run = map[string]texts{}
	}
	return s.Run
}

// settle makes the space and the settings of it, and returns all that is wrong with them.
func (s *sought) settle() (faults []error) {
	fault := func(where string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", where, err))
		}
	}
	what := "run"
	if s.subject = new(neural); s.Fit != nil {
		s.subject, what = new(learner), "fit"
	}
	if s.Fit != nil && s.Run != nil {
		fault("run and fit", errors.New("want one of them: what each trial trains"))
	}
	flags := s.flags()
	for _, name := range s.withheld() {
		if _, there := s.given()[name]; there && !slices.Contains(s.fixed(), name) {
			fault(what+": "+name, errors.New("is what the search itself says: leave it out"))
		}
	}
	fault(what, cli.SetAll(flags, s.all(nil)))
	for _, name := range slices.Sorted(maps.Keys(s.Space)) {
		f := flags.Lookup(name)
		switch {
		case f == nil:
			fault("space", cli.SetAll(flags, map[string][]string{name: {""}}))
			continue
		case slices.Contains(append(s.fixed(), s.withheld()...), name):
			fault("space: "+name, fmt.Errorf("is the same for all trials: give it with %s", what))
		}
		p, err := s.Space[name].parameter(name, f)
		fault("space: "+name, err)
		if err == nil {
			s.space = append(s.space, p)
		}
	}
	if len(s.Space) == 0 {
		fault("space", errors.New("is missing: want parameters, as in space: {lr: {log: [0.001, 1]}}"))
	} else if err := s.space.Validate(); len(s.space) > 0 && err != nil {
		faults = append(faults, err)
	}
	return append(faults, s.draw(len(faults) == 0)...)
}

// draw makes the settings, and the search of them.
func (s *sought) draw(sound bool) (faults []error) {
	s.Method, s.Settings, s.Points = cmp.Or(s.Method, asha), cmp.Or(s.Settings, defaultSettings), cmp.Or(s.Points, defaultPoints)
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!slices.Contains([]string{asha, random, grid}, s.Method), "method %.40q: want asha, random or grid", s.Method)
	fault(s.Method != asha && (s.Least != 0 || s.Reduce != 0), "least and reduce are for method asha: %.40s trains all trials to the end", s.Method)
	fault(s.Method == asha && s.Least == 0, "least is missing: want the steps after which trials are judged first")
	fault(s.Steps < 1, "steps %d: want 1 or more, the most that each member of a trial makes", s.Steps)
	fault(s.Settings < 1 || s.Settings > search.MaxTrials, "settings %d: want 1 to %d", s.Settings, search.MaxTrials)
	fault(s.Points < 2 || s.Points > maxPoints, "points %d: want 2 to %d", s.Points, maxPoints)
	if !sound || len(faults) > 0 {
		return faults
	}
	if s.list = s.space.Random(s.Settings, s.Seed); s.Method == grid {
		all := 0.0
		s.list, all = s.space.Grid(s.Points, search.MaxTrials)
		fault(all > search.MaxTrials, "a grid of %g settings: want at most %d, by fewer points or choices", all, search.MaxTrials)
	}
	s.config = search.Config{Trials: len(s.list), Steps: s.Steps, Least: s.Least, Reduce: s.Reduce, Members: s.Members, Anew: s.anew()}
	if err := s.config.Validate(); err != nil {
		faults = append(faults, err)
	}
	return faults
}

// all are the flags of a trial.
func (s *sought) all(setting search.Setting) map[string][]string {
	given := map[string][]string{}
	for name, values := range s.given() {
		given[name] = values
	}
	for name, value := range setting {
		given[name] = []string{string(value)}
	}
	return given
}

// tryAll returns the faults of what is trained and of all settings, each once.
func (s *sought) tryAll() error {
	if cli.SetAll(s.flags(), s.all(nil)) != nil {
		return nil // told before
	}
	var faults []error
	said := map[string]bool{}
	try := func(what string, setting search.Setting) {
		if err := s.fault(s.all(setting), s.config); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !said[line] && len(faults) < maxSaid {
					said[line], faults = true, append(faults, fmt.Errorf("%s: %s", what, line))
				}
			}
		}
	}
	try("what each trial trains", nil)
	for _, setting := range s.list {
		try(fmt.Sprintf("a trial with %s", setting), setting)
	}
	return errors.Join(faults...)
}

// digest is what members of a search must have alike.
func (s *sought) digest() string {
	given := s.all(nil)
	delete(given, "data")
	text, _ := json.Marshal([]any{given, s.list, s.config, s.Fit != nil}) // texts and numbers
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:8])
}

// writeConfig writes flags as a file for --config.
func writeConfig(path, head string, given map[string][]string) error {
	var text strings.Builder
	text.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := &yaml.Node{Kind: yaml.SequenceNode}
		for _, v := range given[name] {
			value.Content = append(value.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
		}
		if len(value.Content) == 1 {
			value = value.Content[0]
		}
		line, err := yaml.Marshal(map[string]*yaml.Node{name: value})
		if err != nil {
			return err
		}
		text.Write(line)
	}
	return files.Replace(path, 0o644, files.Text([]byte(text.String())))
}
