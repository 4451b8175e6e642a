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
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/quant"
)

// readPolicy reads a codec policy from a YAML file. The error lists the faults, with
// their lines. It does not check what depends on the model.
func readPolicy(path string) (quant.Policy, error) {
	const what = "reading the codec policy"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// A pipe would be empty when it is read again, as the processes of local do.
		return quant.Policy{}, fmt.Errorf("%s: %s is no regular file: put it into one, since it is read more than once", what, path)
	}
	text, err := files.Read(path, cli.MaxConfigFile)
	if err != nil {
		return quant.Policy{}, fmt.Errorf("%s: %w", what, err)
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

// policyNode makes a mapping from pairs of key and value, without pairs whose value is empty.
func policyNode(pairs ...string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			node.Content = append(node.Content, scalar(pair[0]), scalar(pair[1]))
		}
	}
	return node
}

// scalar is a string node. With tabs or line breaks it is quoted: otherwise the YAML library
// writes it as a block of lines, and cannot read a block back that begins with a tab.
func scalar(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if strings.ContainsFunc(value, unicode.IsControl) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

func parsePolicy(text []byte) (policy quant.Policy, err error) {
	root, err := cli.ParseMapping(text, `"codec: lattice6+4"`)
	if root == nil || err != nil {
		return policy, err
	}
	if node := nullIn(root); node != nil {
		return policy, fmt.Errorf("line %d: want a plain value", node.Line)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&policy); err != nil {
		return policy, err
	}
	return policy, policy.Validate(nil)
}

// nullIn finds a key or rule without a value, which the YAML library would take for a default.
func nullIn(node *yaml.Node) *yaml.Node {
	if node.Tag == "!!null" {
		return node
	}
	for _, part := range node.Content {
		if null := nullIn(part); null != nil {
			return null
		}
	}
	return nil
}
