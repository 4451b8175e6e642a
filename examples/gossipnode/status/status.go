// Package status is the command status: it shows the members of a run and their progress, as one member reports them.
// It is no member: it does not train or exchange, and is not counted.
//
// Read status.go for the command, members.go for the output.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	watchFlag = "watch"
	// watchEvery is the default time between two looks, and leastWatch the least: members do not report more often.
	watchEvery = "2s"
	leastWatch = control.DigestSpacing
	// timeout bounds the question at one address: where nobody answers, a dial takes most of it.
	timeout = 15 * time.Second
)

// Command makes the command status.
func Command(std cli.Streams) *cobra.Command {
	var (
		s     settings.Settings
		every time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show who takes part in a run, and how each gets on",
		Long: `Status asks a member of a run, the first at --join that answers, for all members that it
knows, and prints a line for each. It joins nothing: nobody exchanges with it, waits for
it, or counts it, and any member can be asked.

  name, id   what the member calls itself (run --name), and the end of its id
  role       active begins exchanges, passive serves them
  steps      of its own; lag is how many the member that has most is ahead
  loss       on its own data; it and what follows the member tells now and then, at the
             latest some seconds ago, and not at all with run --digests -1s
  version    of its release
  exchange   time since its last exchange completed
  does       whether it trains, holds rows for others (run --hold), or both, and rows, how
             many it holds; the columns are there if a member holds some
  site       the network that it says it shares with others (run --site), and uplink, at least
             what that carries (run --uplink); the columns are there if a member says so
  harmed by  the partner whose exchanges raise its loss most, and how far it still trusts
             that partner; the column is there if a member trusts one by less than half

Below stand alarms, those of the dashboard: lost members, models that grow apart, no
exchange for two minutes, an old checkpoint, falling accuracy, more bytes than --budget.
Each member that runs this release judges itself and tells the others; those of other
programs are judged by what they tell.

Who shows a list (run --allow) or a key asks for it here, too: give --key and --run-key.
With --watch it looks again and again until Ctrl-C; with --json too it prints a line each
time.`,
		Example: `  gossipnode status --join 192.0.2.7:4001
  gossipnode status --join 192.0.2.7:4001 --watch
  gossipnode status --join 192.0.2.7:4001 --run digits --run-key run.key --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			faults := cli.Faults(s.Network.Faults())
			faults.If(every != 0 && every < leastWatch, watchFlag, "%s: want at least %s", every, leastWatch)
			if len(s.Join) == 0 {
				faults.Add(errors.New("status needs --join, the address of a member, or a token"))
			}
			if err := sources.Usage(faults...); err != nil {
				return err
			}
			return show(s, every, std)
		},
	}
	s.RegisterMember(cmd.Flags())
	cmd.Flags().DurationVar(&every, watchFlag, 0, "look again and again, so often")
	cmd.Flags().Lookup(watchFlag).NoOptDefVal = watchEvery
	cli.TakeFile(cmd.Flags())
	return cmd
}

// show looks once, or repeatedly until a signal.
func show(s settings.Settings, every time.Duration, std cli.Streams) (err error) {
	log := cli.NewLog(zapcore.WarnLevel, std.Err)
	defer p2pnet.BridgeLogs(zap.NewNop())()
	admission, tr, err := s.Outside(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	var alarms watch.Alarms
	for first := true; ; first = false {
		members, err := look(ctx, s, admission, tr)
		seen := flock{run: s.Run, members: members, now: time.Now()}
		if err == nil {
			seen.alarms = alarms.See(members, "", stats.Reading{At: seen.now})
		}
		switch {
		case ctx.Err() != nil && !first:
			return nil
		case err != nil && (first || every == 0):
			return err
		case err != nil: // the run may come back
			fmt.Fprintln(std.Err, cli.Printable(err.Error()))
		default:
			if err := seen.print(s.JSON, every > 0, std.Out); err != nil {
				return err
			}
		}
		if every == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// Members asks the first member at --join that answers for all that it knows.
func Members(ctx context.Context, s settings.Settings, log *zap.Logger) (members []control.Member, err error) {
	admission, tr, err := s.Outside(log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	return look(ctx, s, admission, tr)
}

// Description is what the run is, as the first member at --join says that answers; it has no fields if that says
// nothing.
func Description(ctx context.Context, s settings.Settings, log *zap.Logger) (d description.Description, err error) {
	admission, tr, err := s.Outside(log)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	for _, address := range s.Join {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		found, err := admission.Inquire(ctx, tr, address, s.Run, [32]byte{}) // refuses the layout of no model
		cancel()
		if err == nil || len(found.Description.Fields) > 0 {
			return found.Description, nil
		}
	}
	return d, nil
}

// look asks the first member that answers.
func look(ctx context.Context, s settings.Settings, admission peer.Admission, tr transport.Transport) ([]control.Member, error) {
	var faults []error
	for _, address := range s.Join {
		seen, err := ask(ctx, s, admission, tr, address)
		if err == nil {
			return seen, nil
		}
		faults = append(faults, fmt.Errorf("%s: %w", address, err))
	}
	return nil, fmt.Errorf("no member reports who takes part in %q: %w", s.Run, errors.Join(faults...))
}

// ask asks the member at an address.
func ask(ctx context.Context, s settings.Settings, admission peer.Admission, tr transport.Transport, address string) (seen []control.Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	member, err := tr.Connect(ctx, address)
	if err == nil {
		seen, err = control.Observer{Transport: tr, Run: s.Run, RunKey: admission.RunKey}.Members(ctx, member)
	}
	if err == nil {
		return seen, nil
	}
	if member != "" && ctx.Err() == nil { // a hello tells why the member does not report
		if _, why := admission.Inquire(ctx, tr, address, s.Run, [32]byte{}); errors.Is(why, transport.ErrNotAdmitted) {
			err = why
		}
	}
	remedy := settings.Remedy(err)
	switch {
	case errors.Is(err, transport.ErrUnknownProtocol):
		remedy = "members of older releases do not tell; ask one of this release"
	case remedy == "" && member != "":
		remedy = "if the run has a key or a list, give --run-key, or with --key the identity of a peer on it"
	}
	if remedy != "" {
		err = fmt.Errorf("%w: %s", err, remedy)
	}
	return nil, err
}

// clear clears the terminal (ECMA-48).
const clear = "\x1b[H\x1b[J"

// print writes the members; on a terminal it replaces the earlier output if repeated.
func (f flock) print(asJSON, repeated bool, out io.Writer) error {
	if asJSON {
		return json.NewEncoder(out).Encode(f)
	}
	text := f.table()
	if repeated {
		text += "\n"
		if cli.Redraws(out) {
			text = clear + text
		}
	}
	_, err := io.WriteString(out, text)
	return err
}
