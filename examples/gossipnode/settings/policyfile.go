package settings

import (
	"bytes"
	"errors"
	"fmt"
	"os"
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
	var (
		text bytes.Buffer
		root yaml.Node
	)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(indent)
	err := root.Encode(policy)
	quoteControls(&root)
	if err := errors.Join(err, encoder.Encode(&root), encoder.Close()); err != nil {
		return "", fmt.Errorf("printing the codec policy: %w", err)
	}
	return text.String(), nil
}

// quoteControls puts strings with tabs or line breaks in quotes, since the library writes
// them as blocks of lines otherwise, and reads none back that begins with a tab.
func quoteControls(node *yaml.Node) {
	if strings.ContainsFunc(node.Value, unicode.IsControl) {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, part := range node.Content {
		quoteControls(part)
	}
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

// nullIn is a key or rule without a value, which the library would take for a default.
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
