package cli

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Child is this program, and the environment to start it in as one of a number of
// peers, which share the cores of this machine unless GOMAXPROCS says otherwise.
func Child(peers int) (program string, environment []string, err error) {
	program, err = os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("finding the program to start peers with: %w", err)
	}
	return program, childEnvironment(os.Environ(), peers, runtime.GOMAXPROCS(0)), nil
}

// childEnvironment is this process's, without the settings in it: children get
// all of theirs as flags. Each gets its share of the cores but never only one: the
// Go scheduler leaves the network waiting for up to ten milliseconds if its only
// processor computes.
func childEnvironment(environment []string, peers, cores int) []string {
	const coresVariable = "GOMAXPROCS="
	var kept []string
	given := false
	for _, variable := range environment {
		given = given || strings.HasPrefix(variable, coresVariable)
		if !strings.HasPrefix(variable, EnvironmentPrefix) {
			kept = append(kept, variable)
		}
	}
	if !given {
		kept = append(kept, coresVariable+strconv.Itoa(max(2, cores/peers)))
	}
	return kept
}
