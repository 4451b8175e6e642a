package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// unknownVariables says which variables of an environment have the prefix of settings and
// are none of any command; empty if there is none such. They are no fault: other programs
// make such names too, as Kubernetes does for a service called gossipnode.
func unknownVariables(root *cobra.Command, environment []string) string {
	const most = 8 // that are named
	known := variablesOf(root)
	var found []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, EnvironmentPrefix) || slices.Contains(known, name) {
			continue
		}
		key := strings.TrimPrefix(name, EnvironmentPrefix)
		if alike, ok := Nearest(key, withoutPrefix(known)); ok {
			name += " (did you mean " + EnvironmentPrefix + alike + "?)"
		}
		found = append(found, Printable(name))
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	if more := len(found) - most; more > 0 {
		found = append(found[:most], fmt.Sprintf("and %d more", more))
	}
	return "in the environment, and no setting of any command: " + strings.Join(found, ", ")
}

// variablesOf lists the variables of a command and of those below it.
func variablesOf(cmd *cobra.Command) []string {
	known := []string{variableName(ConfigFlag)}
	for _, key := range keysOf(cmd.Flags()) {
		known = append(known, variableName(key))
	}
	for _, below := range cmd.Commands() {
		known = append(known, variablesOf(below)...)
	}
	return known
}

func withoutPrefix(names []string) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = strings.TrimPrefix(name, EnvironmentPrefix)
	}
	return keys
}
