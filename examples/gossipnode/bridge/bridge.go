// Package bridge is the command bridge: a peer whose trainer is another process on this machine. docs/BRIDGE.md
// describes their protocol, package peer/bridge implements it.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/bridge"
)

// ways are the ways in which a trainer can reach the bridge.
type ways struct {
	control, memory int
	socket          string
}

const (
	controlFlag = "control-fd"
	memoryFlag  = "memory-fd"
	socketFlag  = "socket"
	none        = -1
)

// Command makes the command that serves a trainer.
func Command(std cli.Streams) *cobra.Command {
	var (
		w ways
		s settings.Settings // settings that a trainer does not send
	)
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Let a trainer in another process take part, such as one in Python",
		Long: `Bridge is a peer whose trainer is another process of this machine, in any language: it
takes lines of JSON as control, and shares memory for the values. Python has the package
gossipnode for it (examples/python); docs/BRIDGE.md is what other languages need.`,
		Annotations: map[string]string{cli.Details: `A trainer starts it with descriptors of its own, or connects to --socket, which serves
one trainer after another, or speaks with it over standard input and output. What a trainer
says in its hello are flags by name; one that is given here, on the command line, comes first.

It ends with the trainer: with exit code 0 if that has said leave, and with 1, in good order
too, if it has gone without a word. With --socket it ends at SIGINT or SIGTERM.`},
		Example: `  gossipnode bridge --socket /run/flock.sock --run digits --join 192.0.2.7:4001
  gossipnode bridge --control-fd 3 --memory-fd 4`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := s.Load(cmd); err != nil { // checks all that does not depend on the trainer
				return err
			}
			if err := w.faults(); err != nil {
				return err
			}
			return w.serve(service{given: cmd.Flags(), std: std}, std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&w.socket, socketFlag, "", "`PATH` of a Unix socket that trainers connect to, one after another; they send the memory's descriptor along with hello, or name a file")
	flags.IntVar(&w.control, controlFlag, none, "inherited descriptor of a socket to a trainer")
	flags.IntVar(&w.memory, memoryFlag, none, "inherited descriptor of the memory")
	cli.Group(flags, "Trainer", socketFlag, controlFlag, memoryFlag)
	s.RegisterBridge(flags)
	cli.TakeFile(flags)
	return cmd
}

func (w ways) faults() error {
	var faults cli.Faults
	faults.If(w.socket != "" && w.control != none, socketFlag, "and --%s are two ways: give one of them", controlFlag)
	faults.If(w.memory != none && w.control == none, memoryFlag, "needs --%s", controlFlag)
	if err := errors.Join(faults...); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// serve serves trainers in the given way.
func (w ways) serve(s service, std cli.Streams) error {
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	// Without SIGPIPE, a message to a trainer that has ended fails; the signal would end the process before the peer
	// leaves its run.
	signal.Ignore(syscall.SIGPIPE)
	if w.socket != "" {
		return listen(ctx, w.socket, s)
	}
	control, memory, err := w.inherited(std)
	if err != nil {
		return err
	}
	if memory != nil {
		defer memory.Close()
	}
	err = s.serve(ctx, control, memory)
	if errors.Is(err, bridge.ErrGone) {
		return fmt.Errorf("%w; the flock keeps the steps that it had committed", err)
	}
	return err
}

// inherited returns the descriptors of the command line, or standard input and output.
func (w ways) inherited(std cli.Streams) (control io.ReadWriteCloser, memory *os.File, err error) {
	if w.control == none {
		return newPipes(std), nil, nil
	}
	file := os.NewFile(uintptr(w.control), "control")
	if file == nil {
		return nil, nil, cli.Usage(cli.Faultf(controlFlag, "%d is no descriptor", w.control))
	}
	defer file.Close() // FileConn has a copy
	if control, err = net.FileConn(file); err != nil {
		return nil, nil, cli.Usage(cli.Faultf(controlFlag, "%d is no socket that was inherited: %v", w.control, err))
	}
	if w.memory != none {
		memory = os.NewFile(uintptr(w.memory), "memory")
	}
	return control, memory, nil
}

// pipes makes one connection of standard input and output. The goroutine that reads lives as long as the process:
// nothing can end a read from a terminal.
type pipes struct {
	*io.PipeReader
	io.Writer
}

func newPipes(std cli.Streams) pipes {
	read, write := io.Pipe()
	go func() {
		_, err := io.Copy(write, std.In)
		_ = write.CloseWithError(err) // nil means the end of the file
	}()
	return pipes{read, std.Out}
}

// flagsGiven sets flags of to that the command line has set in from.
func flagsGiven(from, to *pflag.FlagSet) {
	from.Visit(func(f *pflag.Flag) {
		if to.Lookup(f.Name) == nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			_ = to.Set(f.Name, value) // from has accepted it
		}
	})
}
