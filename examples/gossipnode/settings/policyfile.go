package settings

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/quant"
)

// readPolicy reads a codec policy from a YAML file, and reports all that is wrong
// with it, with lines; what depends on the model is yet to be checked.
func readPolicy(path string) (quant.Policy, error) {
	const what = "reading the codec policy"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// A pipe would be empty the second time, and the processes of local read it too.
		return quant.Policy{}, fmt.Errorf("%s: %s is no regular file: put it into one, since it is read more than once", what, path)
	}
	text, err := cli.ReadText(path, what)
	if err != nil {
		return quant.Policy{}, err
	}
	policy, err := parsePolicy(text)
	if err != nil {
		return quant.Policy{}, fmt.Errorf("%s: %s: %w", what, path, err)
	}
	return policy, nil
}

// PrintPolicy is the YAML text of a policy.
func PrintPolicy(policy quant.Policy) (string, error) {
	const indent = 2
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(indent)
	root := policyNode("codec", policy.Codec, "exact", policy.Exact, "quantized", policy.Quantized)
	if len(policy.Rules) > 0 {
		rules := &yaml.Node{Kind: yaml.SequenceNode}
		for _, r := range policy.Rules {
			rule := policyNode("class", r.Class, "range", r.Range, "codec", r.Codec, "quantized", r.Quantized)
			if r.Priority != 0 {
				rule.Content = append(rule.Content, scalar("priority"), &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(r.Priority)})
			}
			rules.Content = append(rules.Content, rule)
		}
		root.Content = append(root.Content, scalar("rules"), rules)
	}
	if err := errors.Join(encoder.Encode(root), encoder.Close()); err != nil {
		return "", fmt.Errorf("printing the codec policy: %w", err)
	}
	return text.String(), nil
}

// policyNode maps keys to values, each value after its key, without those that are empty.
func policyNode(pairs ...string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			node.Content = append(node.Content, scalar(pair[0]), scalar(pair[1]))
		}
	}
	return node
}

// scalar is a string: in quotes if it has tabs or line breaks, since the library writes it
// as a block of lines otherwise, and reads none back that begins with a tab.
func scalar(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if strings.ContainsFunc(value, unicode.IsControl) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

func parsePolicy(text []byte) (quant.Policy, error) {
	var policy quant.Policy
	root, err := cli.ParseMapping(text, `"codec: lattice6+4"`)
	if root == nil || err != nil {
		return policy, err
	}
	var reader policyReader
	reader.mapping(root, map[string]func(*yaml.Node) error{
		"codec":     word(&policy.Codec),
		"exact":     word(&policy.Exact),
		"quantized": word(&policy.Quantized),
		"rules":     func(node *yaml.Node) error { return reader.rules(node, &policy.Rules) },
	})
	if len(reader.faults) == 0 {
		reader.faults = append(reader.faults, policy.Validate(nil))
	}
	return policy, errors.Join(reader.faults...)
}

// policyReader gathers what is wrong with a policy's text.
type policyReader struct{ faults []error }

func (r *policyReader) fault(node *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("line %d: %w", node.Line, fmt.Errorf(format, args...)))
}

// mapping hands the value of each key to its field.
func (r *policyReader) mapping(node *yaml.Node, fields map[string]func(*yaml.Node) error) {
	known := make([]string, 0, len(fields))
	for key := range fields {
		known = append(known, key)
	}
	slices.Sort(known)
	seen := make(map[string]bool)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		set, ok := fields[key.Value]
		switch {
		case !ok:
			r.fault(key, "unknown key %q%s", key.Value, suggestion(key.Value, known))
		case seen[key.Value]:
			r.fault(key, "key %q is there twice", key.Value)
		default:
			if err := set(value); err != nil {
				r.fault(value, "key %q: %w", key.Value, err)
			}
		}
		seen[key.Value] = true
	}
}

// suggestion is the known key that is nearest to an unknown one, or all of them if
// none is near.
func suggestion(key string, known []string) string {
	if alike, ok := cli.Nearest(key, known); ok {
		return fmt.Sprintf(": did you mean %q?", alike)
	}
	return ": want " + cli.List(known)
}

// rules reads a list of rules.
func (r *policyReader) rules(node *yaml.Node, into *[]quant.Rule) error {
	if node.Kind != yaml.SequenceNode {
		return errors.New(`want a list, as in "- {class: conv, codec: bf16}"`)
	}
	if len(node.Content) > quant.MaxRules {
		return fmt.Errorf("%d rules, at most %d", len(node.Content), quant.MaxRules)
	}
	for _, item := range node.Content {
		if item.Kind != yaml.MappingNode {
			r.fault(item, `want a rule, as in "{class: conv, codec: bf16}"`)
			continue
		}
		var rule quant.Rule
		r.mapping(item, map[string]func(*yaml.Node) error{
			"class":     word(&rule.Class),
			"range":     word(&rule.Range),
			"codec":     word(&rule.Codec),
			"quantized": word(&rule.Quantized),
			"priority":  whole(&rule.Priority),
		})
		*into = append(*into, rule)
	}
	return nil
}

// word is a field of plain text.
func word(into *string) func(*yaml.Node) error {
	return func(node *yaml.Node) error {
		values, err := cli.Scalars(node)
		if err != nil || node.Kind != yaml.ScalarNode {
			return errors.New("want a plain value")
		}
		*into = values[0]
		return nil
	}
}

// whole is a field that is a whole number.
func whole(into *int) func(*yaml.Node) error {
	return func(node *yaml.Node) error {
		n, err := strconv.Atoi(node.Value)
		if err != nil || node.Kind != yaml.ScalarNode {
			return fmt.Errorf("%q: want a whole number", node.Value)
		}
		*into = n
		return nil
	}
}
