// Package config is the command config: the settings that hold, and where each comes from.
package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// effective is one setting as it holds.
type effective struct {
	key   string
	Value any    `json:"value"`
	From  string `json:"from"`
	// Place is the flag, the variable, or the line of the file.
	Place string `json:"place,omitempty"`
}

// Command makes the command that tells what settings would hold.
func Command(std cli.Streams) *cobra.Command {
	var s settings.Settings
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings that hold, and where each comes from",
		Long: `Config takes the flags of run, and prints every setting as run would have it, with
where it comes from: a flag, an environment variable, a line of the file given with
--config, or the default, in this order of precedence. What it prints is such a file
itself: settings that are as by default are in it as comments.

It refuses what run refuses: with exit code 0, the configuration is good.`,
		Example: `  gossipnode config --config node.yaml
  GOSSIPNODE_BATCH=64 gossipnode config --config node.yaml --lr 0.1 --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			if err := s.Validate(sources); err != nil {
				return err
			}
			all := effectiveOf(s, cmd.Flags(), sources)
			if s.JSON {
				return printEffectiveJSON(all, std.Out)
			}
			return printEffective(all, std.Out)
		},
	}
	s.Register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	return cmd
}

// effectiveOf lists the settings in the order of the flags.
func effectiveOf(s settings.Settings, flags *pflag.FlagSet, sources cli.Origins) (all []effective) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == cli.ConfigFlag || f.Name == "help" {
			return
		}
		from := sources.Source(f.Name)
		e := effective{key: f.Name, Value: valueOf(f), From: from.String()}
		if from != cli.FromDefault {
			e.Place = strings.TrimSuffix(sources.Name(f.Name), ": "+f.Name)
		}
		switch {
		case f.Name == "lr":
			e.Value = s.Rate()
		case f.Name == "epochs" && s.Steps == 0:
			e.Value = s.Passes()
		case (f.Name == "steps" || f.Name == "epochs") && from == cli.FromDefault:
			return // the other one says how much work there is
		}
		all = append(all, e)
	})
	return all
}

// valueOf is the value of a flag as a number, a truth value, a list, or text.
func valueOf(f *pflag.Flag) any {
	if several, ok := f.Value.(pflag.SliceValue); ok {
		return append([]string{}, several.GetSlice()...)
	}
	switch f.Value.Type() {
	case "int", "uint64", "float64", "bool":
		return json.RawMessage(f.Value.String())
	}
	return f.Value.String()
}

// printEffective prints settings as a configuration file, with their origins beside.
func printEffective(all []effective, out io.Writer) error {
	var lines []string
	longest := 0
	for _, e := range all {
		line, err := e.Line()
		if err != nil {
			return err
		}
		lines = append(lines, line)
		longest = max(longest, min(len(line), 48)) // beyond, the origin follows where it may
	}
	for i, e := range all {
		origin := e.Place
		if origin == "" {
			origin = e.From
		}
		if _, err := fmt.Fprintf(out, "%-*s  # %s\n", longest, lines[i], origin); err != nil {
			return fmt.Errorf("printing the configuration: %w", err)
		}
	}
	return nil
}

// Line is a setting as a line of a configuration file.
func (e effective) Line() (string, error) {
	value := e.Value
	if raw, ok := value.(json.RawMessage); ok {
		value = yaml.Node{Kind: yaml.ScalarNode, Value: string(raw)}
	}
	node := yaml.Node{}
	if err := node.Encode(value); err != nil {
		return "", fmt.Errorf("printing %s: %w", e.key, err)
	}
	node.Style = yaml.FlowStyle
	text, err := yaml.Marshal(&node)
	if err != nil {
		return "", fmt.Errorf("printing %s: %w", e.key, err)
	}
	line := e.key + ": " + strings.TrimSpace(string(text))
	if e.From == cli.FromDefault.String() {
		line = "# " + line
	}
	return line, nil
}

// printEffectiveJSON prints settings as one JSON object, by their keys.
func printEffectiveJSON(all []effective, out io.Writer) error {
	byKey := make(map[string]effective, len(all))
	for _, e := range all {
		byKey[e.key] = e
	}
	if err := json.NewEncoder(out).Encode(byKey); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return nil
}
