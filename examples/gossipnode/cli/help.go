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
	// helpWidth is the width of the lines of flags, in characters. If flags are left out, each gets one line of
	// screenWidth, to fit on one screen.
	helpWidth, screenWidth = 110, 80
	// Details is the annotation of a command with a text that --help-all adds to its flags.
	Details = "details"

	// Annotations of flags.
	topicOf, common = "topic", "common"
	// others is the topic of flags that have none.
	others = "Flags"
)

// Group puts the flags added since the last call under a topic of the help. --help shows those in shown; --help-all
// shows all.
func Group(flags *pflag.FlagSet, topic string, shown ...string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[topicOf] != nil {
			return
		}
		f.Annotations = map[string][]string{topicOf: {topic}}
		if slices.Contains(shown, f.Name) {
			f.Annotations[common] = []string{""}
		}
	})
	if flags.Lookup(helpAllFlag) == nil {
		flags.BoolFunc(helpAllFlag, "help with all flags", func(string) error {
			flags.VisitAll(func(f *pflag.Flag) { _ = flags.SetAnnotation(f.Name, common, nil) }) // fails only for unknown flags
			return pflag.ErrHelp
		})
		f := flags.Lookup(helpAllFlag)
		f.Hidden, f.Annotations = true, map[string][]string{topicOf: {""}}
	}
}

// Topic is the topic of a flag, "" if it has none.
func Topic(f *pflag.Flag) string {
	if of := f.Annotations[topicOf]; len(of) > 0 {
		return of[0]
	}
	return ""
}

// OnlyHelpAll hides flags from --help.
func OnlyHelpAll(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		delete(flags.Lookup(name).Annotations, common)
	}
}

// usage is the part of the help that lists commands and flags.
func usage(cmd *cobra.Command) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage: %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			fmt.Fprintf(&text, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
		}
	}
	topics, left := byTopic(cmd.Flags())
	if left > 0 {
		fmt.Fprintf(&text, "\n%s%d more flags, and more about them, with --%s.\n", onOneScreen(topics), left, helpAllFlag)
	} else {
		for _, t := range topics {
			fmt.Fprintf(&text, "\n%s:\n%s", t.name, t.flags.FlagUsagesWrapped(helpWidth))
		}
		if details := cmd.Annotations[Details]; details != "" {
			fmt.Fprintf(&text, "\n%s\n", details)
		}
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), text.String())
	return err
}

// topic is a group of flags.
type topic struct {
	name  string
	flags *pflag.FlagSet
}

// byTopic groups the flags that are shown, and counts the others.
func byTopic(flags *pflag.FlagSet) (topics []topic, left int) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := cmp.Or(Topic(f), others)
		if f.Hidden {
			return
		}
		if _, shown := f.Annotations[common]; !shown && name != others && flags.Lookup(helpAllFlag) != nil {
			left++
			return
		}
		at := slices.IndexFunc(topics, func(t topic) bool { return t.name == name })
		if at < 0 {
			at = len(topics)
			topics = append(topics, topic{name, pflag.NewFlagSet(name, pflag.ContinueOnError)})
			topics[at].flags.SortFlags = name == others
		}
		topics[at].flags.AddFlag(f)
	})
	if i := slices.IndexFunc(topics, func(t topic) bool { return t.name == others }); i >= 0 {
		topics = append(slices.Delete(slices.Clone(topics), i, i+1), topics[i]) // moves the topic to the end
	}
	return topics, left
}

// onOneScreen lists flags, mostly one line each, with the first words of their description.
func onOneScreen(topics []topic) string {
	var text strings.Builder
	width := 0
	for _, t := range topics {
		t.flags.VisitAll(func(f *pflag.Flag) { width = max(width, len(nameOf(f))) })
	}
	for _, t := range topics {
		fmt.Fprintf(&text, "%s:\n", t.name)
		t.flags.VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return // the user is reading it
			}
			_, about := pflag.UnquoteUsage(f)
			if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) {
				about += fmt.Sprintf(" (default %s)", f.DefValue)
			}
			room := screenWidth - width - len("    ")
			about = wrapped(firstWords(about, room), room, strings.Repeat(" ", screenWidth-room))
			fmt.Fprintf(&text, "  %-*s  %s\n", width, nameOf(f), about)
		})
	}
	return text.String()
}

// nameOf is a flag as it is typed, with the type of its value.
func nameOf(f *pflag.Flag) string {
	kind, _ := pflag.UnquoteUsage(f)
	name := strings.TrimSpace("--" + f.Name + " " + strings.TrimSuffix(kind, "Array"))
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return name
}

// firstWords is the part of a text that fits in room: up to the end of a clause, if that uses at least half of the
// room, or up to a default. If there is none, it is the text up to the end of the first clause, since a list of names
// must be complete.
func firstWords(text string, room int) string {
	if len(text) <= room {
		return text
	}
	at, beyond := 0, len(text)
	for _, end := range []string{" (", ";", ": ", ". "} {
		at = max(at, strings.LastIndex(text[:min(len(text), room+len(end))], end))
		if next := strings.Index(text[room:], end); next >= 0 && end != ": " {
			beyond = min(beyond, room+next)
		}
	}
	if open := strings.LastIndex(text[:at], " ("); open > strings.LastIndex(text[:at], ")") {
		at = open // not within parentheses
	}
	if at >= room/2 || at > 0 && strings.HasPrefix(text[at:], " (default") {
		return text[:at]
	}
	return text[:beyond]
}

// wrapped breaks a text into lines that fit in room; all but the first are indented.
func wrapped(text string, room int, indent string) string {
	if len(text) <= room {
		return text
	}
	at := strings.LastIndex(text[:room+1], " ")
	if at < 0 {
		return text
	}
	return text[:at] + "\n" + indent + wrapped(text[at+1:], room, indent)
}
