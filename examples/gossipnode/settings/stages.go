package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

const stagesFlag = "stages"

// maxStages bounds the file of --stages, in bytes.
const maxStages = 1 << 20

// Stages are those of --stages: the number of those of the model, or those that prepare rows in place of the default ones.
type Stages struct {
	Model int           // into how many the model is cut; 0: into none
	List  []table.Stage // nil if there are none
	text  string        // the list as one line of JSON, or the number, which members compare
}

// Set implements pflag.Value: text is a number, the path of a file, or the list itself as String writes it.
func (s *Stages) Set(text string) error {
	if _, err := strconv.Atoi(text); err == nil || text == "" || strings.HasPrefix(text, "[") {
		return s.Take(text)
	}
	data, err := files.Read(text, maxStages)
	if err == nil {
		err = s.parse(data)
	}
	return err
}

// Take is Set for a list that another peer sent: it reads no file.
func (s *Stages) Take(text string) error {
	if *s = (Stages{}); text == "" {
		return nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > peer.MaxStages {
			return fmt.Errorf("want 1 to %d stages, or a file", peer.MaxStages)
		}
		if n > 1 {
			*s = Stages{Model: n, text: text}
		}
		return nil
	}
	return s.parse([]byte(text))
}

// String implements pflag.Value.
func (s *Stages) String() string { return s.text }

// Type implements pflag.Value.
func (s *Stages) Type() string { return cli.FileType }

// parse reads a list in YAML or JSON, which is a part of YAML.
func (s *Stages) parse(data []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.SequenceNode || len(document.Content[0].Content) == 0 {
		return errors.New(`want a list of stages, such as "- kind: impute"`)
	}
	var read Stages
	var all []map[string]any
	for _, node := range document.Content[0].Content {
		stage, given, err := parseStage(node)
		if err != nil {
			return err
		}
		read.List, all = append(read.List, stage), append(all, given)
	}
	text, err := json.Marshal(all)
	read.text = string(text)
	*s = read
	return err
}

// parseStage reads one stage, and returns the settings that were given.
func parseStage(node *yaml.Node) (stage table.Stage, given map[string]any, err error) {
	if node.Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf(`line %d: want a stage and its settings, such as "kind: onehot"`, node.Line)
	}
	if err := node.Decode(&given); err != nil {
		return nil, nil, err
	}
	kind, _ := given["kind"].(string)
	kinds := prepare.Kinds()
	if kinds[kind] == nil {
		return nil, nil, fmt.Errorf("line %d: there is no kind of stage %q%s", node.Line, kind, among(kind, kinds.Names()))
	}
	stage = kinds[kind]()
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Value == "kind" {
			continue
		}
		if all := settingsOf(stage); !slices.Contains(all, key.Value) {
			return nil, nil, fmt.Errorf("line %d: %s has no setting %q%s", key.Line, kind, key.Value, among(key.Value, all))
		}
		one, err := json.Marshal(map[string]any{key.Value: given[key.Value]})
		if err == nil {
			err = json.Unmarshal(one, stage)
		}
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
			err = fmt.Errorf("want a %s, not a %s", wrong.Type, wrong.Value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %s of %s: %w", key.Line, key.Value, kind, err)
		}
	}
	if err := prepare.Check(stage); err != nil {
		return nil, nil, fmt.Errorf("line %d: %s: %w", node.Line, kind, err)
	}
	return stage, given, nil
}

// among lists the valid names, and the one that was probably meant.
func among(name string, all []string) string {
	hint := ""
	if near, ok := cli.Nearest(name, all); ok {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Sprintf(": want %s%s", cli.List(all), hint)
}

// settingsOf are the names of a stage's settings, without the fields that it learns.
func settingsOf(stage table.Stage) (names []string) {
	of := reflect.TypeOf(stage).Elem()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "learned" && name != "dropped" {
			names = append(names, name)
		}
	}
	return names
}
