package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	helpAllFlag = "help-all"
	// helpWidth is that of the lines of flags, in characters.
	helpWidth = 110

	// Annotations of flags.
	topicOf, common = "topic", "common"
	// others is the topic of flags that have none.
	others = "Flags"
)

// Group puts the flags that have been added since the last call under a topic of the
// help. Those named are told by --help, the others by --help-all only.
func Group(flags *pflag.FlagSet, topic string, told ...string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[topicOf] != nil {
			return
		}
		f.Annotations = map[string][]string{topicOf: {topic}}
		if slices.Contains(told, f.Name) {
			f.Annotations[common] = []string{""}
		}
	})
	if flags.Lookup(helpAllFlag) == nil {
		flags.BoolFunc(helpAllFlag, "help with all flags", func(string) error {
			flags.VisitAll(func(f *pflag.Flag) { _ = flags.SetAnnotation(f.Name, common, nil) }) // fails for unknown ones only
			return pflag.ErrHelp
		})
		f := flags.Lookup(helpAllFlag)
		f.Hidden, f.Annotations = true, map[string][]string{topicOf: {""}}
	}
}

// Topic is that of a flag, empty if it has none.
func Topic(f *pflag.Flag) string {
	if of := f.Annotations[topicOf]; len(of) > 0 {
		return of[0]
	}
	return ""
}

// Untold leaves flags to --help-all.
func Untold(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		delete(flags.Lookup(name).Annotations, common)
	}
}

// usage is the part of the help that lists commands and flags.
func usage(cmd *cobra.Command) error {
	var text strings.Builder
	if fmt.Fprintf(&text, "Usage:\n  %s\n", cmd.UseLine()); cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			fmt.Fprintf(&text, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
		}
	}
	text.WriteString(flagsByTopic(cmd.Flags()))
	_, err := fmt.Fprint(cmd.OutOrStdout(), text.String())
	return err
}

// flagsByTopic lists the flags that are told.
func flagsByTopic(flags *pflag.FlagSet) string {
	groups, left := map[string]*pflag.FlagSet{others: pflag.NewFlagSet(others, pflag.ContinueOnError)}, 0
	var topics []string
	flags.VisitAll(func(f *pflag.Flag) {
		topic := cmp.Or(Topic(f), others)
		if _, told := f.Annotations[common]; !told && !f.Hidden && topic != others {
			left++
			return
		}
		if groups[topic] == nil {
			groups[topic] = pflag.NewFlagSet(topic, pflag.ContinueOnError)
			groups[topic].SortFlags = false
			topics = append(topics, topic)
		}
		groups[topic].AddFlag(f)
	})
	var text strings.Builder
	for _, topic := range append(topics, others) {
		if lines := groups[topic].FlagUsagesWrapped(helpWidth); lines != "" {
			fmt.Fprintf(&text, "\n%s:\n%s", topic, lines)
		}
	}
	if left > 0 {
		fmt.Fprintf(&text, "\n%d more flags with --%s.\n", left, helpAllFlag)
	}
	return text.String()
}
