package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Child is another process of this program.
type Child struct {
	// Life is its standard input: it leaves when that is closed, by this process or by
	// its death.
	Life io.WriteCloser
	// Kill ends it at once.
	Kill func() error
}

// StartChild starts this program once more, as one of a number that share the cores of
// this machine unless GOMAXPROCS says otherwise. What it says on standard output and on
// standard error is handed over line by line, from a goroutine each; then ended is told
// how it ended.
func StartChild(sharing int, args []string, out, logged func(line string), ended func(error)) (*Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, args...)
	command.Env = childEnvironment(os.Environ(), sharing, runtime.GOMAXPROCS(0))
	life, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	says, logs := &LineWriter{Take: out}, &LineWriter{Take: logged}
	command.Stdout, command.Stderr = says, logs
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := command.Wait() // reads both to their ends, too
		says.Flush()
		logs.Flush()
		ended(err)
	}()
	return &Child{Life: life, Kill: command.Process.Kill}, nil
}

// Event is something that happened to one peer of several, a child or goroutines in its place: one of
// the other fields is set.
type Event[Report any] struct {
	Number int
	Report *Report
	Line   string // what it logged
	End    *End
}

// End is how a peer ended. What one that ended in good order has to say, it has reported before.
type End struct {
	// Killed: the system or somebody ended it, without any fault of its own. Where there are no
	// signals a killed child cannot be told from one that failed.
	Killed bool
	Err    error
}

// StartPeer is StartChild for one that reports on standard output: see EventOf. What happens to it, the
// last of which is its end, goes to events; whoever starts it must receive them until then.
func StartPeer[Report any](number, sharing int, args []string, events chan<- Event[Report]) (*Child, error) {
	return StartChild(sharing, args,
		func(line string) { events <- EventOf[Report](number, line) },
		func(line string) { events <- Event[Report]{Number: number, Line: line} },
		func(err error) { events <- Event[Report]{Number: number, End: endOf(err)} })
}

func endOf(err error) *End {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return &End{Killed: ok && !exit.Exited(), Err: err}
}

// EventOf reads a line of a child's standard output: a report is JSON with a "kind". What is none is shown
// as what it is.
func EventOf[Report any](number int, line string) Event[Report] {
	var of struct{ Kind string }
	report := new(Report)
	if json.Unmarshal([]byte(line), &of) != nil || of.Kind == "" || json.Unmarshal([]byte(line), report) != nil {
		return Event[Report]{Number: number, Line: line}
	}
	return Event[Report]{Number: number, Report: report}
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
