package cli

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Child is another process of this program.
type Child struct {
	// Life is its standard input: the child leaves when this process closes it, or dies.
	Life io.WriteCloser
	// Kill ends it at once.
	Kill func() error
}

// StartChild starts this program again, as one of sharing processes that share the cores of this machine unless
// GOMAXPROCS is set. One goroutine each passes lines of its standard output to out and of its standard error to
// logged. Then ended receives how it ended.
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
	says, logs := &LineWriter{Take: out, Most: maxReport}, &LineWriter{Take: logged}
	command.Stdout, command.Stderr = says, logs
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := command.Wait() // also reads both to their ends
		says.Flush()
		logs.Flush()
		ended(err)
	}()
	return &Child{Life: life, Kill: command.Process.Kill}, nil
}

// Arguments returns the flags whose value is not the default, except those in but, as arguments for a child.
func Arguments(flags *pflag.FlagSet, but ...string) (args []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() == f.DefValue || slices.Contains(but, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

// childEnvironment is the environment of this process without settings: children get all settings as flags. Each
// child gets its share of the cores, but at least two: with a single processor that computes, the Go scheduler leaves
// the network waiting for up to ten milliseconds.
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
