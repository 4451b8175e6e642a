package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer/plan"
)

const maxFile = 16 << 20

// Read reads a file of tasks and members, or with these members instead. Its errors say which line is wrong.
func Read(path string, instead ...plan.Member) (plan.State, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return plan.State{}, cmp.Or(err, fmt.Errorf("%s is no regular file", path))
	}
	text, err := files.Read(path, maxFile)
	if err != nil {
		return plan.State{}, err
	}
	root, err := cli.ParseMapping(text, `"tasks: [{name: monday, kind: epoch, samples: 60000}]"`)
	if err != nil {
		return plan.State{}, err
	}
	var f struct {
		Weights plan.Weights
		Members []plan.Member
		Tasks   []plan.Task
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return plan.State{}, errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), " not found in type plan.", " is not known of a "))
	}
	s := plan.State{Weights: f.Weights, Members: append(instead, f.Members...), Tasks: f.Tasks}
	if len(instead) > 0 {
		s.Members = instead
	}
	if len(s.Tasks) == 0 {
		return s, errors.New("want tasks, one at least: see gossipnode plan --help")
	}
	if len(s.Members) == 0 {
		return s, errors.New("want members, one at least: see gossipnode plan --help")
	}
	return s, located(s.Validate(), root)
}

// located puts the line of the task or member before each fault of a state.
func located(err error, root *yaml.Node) error {
	if err == nil {
		return nil
	}
	var out []error
	for fault := range strings.SplitSeq(err.Error(), "\n") {
		out = append(out, fmt.Errorf("%s%s", line(fault, root), fault))
	}
	return errors.Join(out...)
}

// line is "line 3: " for the place of the task or member that a fault begins with, or "".
func line(fault string, root *yaml.Node) (place string) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		for _, item := range root.Content[i+1].Content {
			for k := 0; k+1 < len(item.Content); k += 2 {
				name := fmt.Sprintf("%s %.40q:", strings.TrimSuffix(root.Content[i].Value, "s"), item.Content[k+1].Value)
				if item.Content[k].Value == "name" && strings.HasPrefix(fault, name) {
					place = fmt.Sprintf("line %d: ", item.Line) // the last of two of a name is the one too many
				}
			}
		}
	}
	return place
}
