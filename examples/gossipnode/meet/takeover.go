package meet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	minPeersFlag = "min-peers"
	askTimeout   = 5 * time.Second // for one address
	askEvery     = time.Second
	sayEvery     = 10 * time.Second
)

// Share collects the flags that all members must give alike: those of Topics, except the flags for reading a member's
// own files.
func (p *Peer) Share(flags *pflag.FlagSet) {
	p.Shared = map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		own := slices.Contains([]string{"data", "format", "memory", "on-disk", "tolerance", "encoding", "separator", "decimal", "missing"}, f.Name)
		if own || !slices.Contains(p.Topics, cli.Topic(f)) && f.Name != topologyFlag {
			return
		}
		p.Shared[f.Name] = cli.TextOf(f)
	})
}

// description is what members must have in common. A peer with other settings is not admitted; a peer without
// settings takes them over.
func (p *Peer) description() description.Description {
	fields := []description.Field{{Name: minPeersFlag, Value: strconv.Itoa(p.MinPeers), Local: true}}
	if p.Columns != "" {
		fields = append(fields, description.Field{Name: "columns", Value: p.Columns})
	}
	for flag, value := range p.Shared {
		if len(value) <= description.MaxValue { // longer values are compared when members meet
			fields = append(fields, description.Field{Name: flag, Value: value})
		}
	}
	return description.Of(p.Run, fields...)
}

// TakeOver asks the addresses to join for their description, and sets all flags that the user has not given
// accordingly. Without a target it keeps asking, since this peer may have been started first.
func (p *Peer) TakeOver(ctx context.Context, from cli.Origins, flags *pflag.FlagSet, std cli.Streams) error {
	there, err := p.ask(ctx, std)
	if err != nil {
		return err
	}
	for _, f := range there.Fields {
		flag := flags.Lookup(f.Name)
		if _, shared := p.Shared[f.Name]; flag == nil || from.Source(f.Name) != cli.FromDefault || !shared && f.Name != minPeersFlag {
			continue
		}
		if err := cli.SetText(flag, f.Value); err != nil {
			return fmt.Errorf("taking over --%s %q from the others: %w", f.Name, f.Value, err)
		}
	}
	p.Share(flags)
	return p.unlike(p.description().Differences(there))
}

// unlike returns a usage error for flags that differ from the others'; nil if none do.
func (p *Peer) unlike(differences []description.Difference) error {
	harmful, _ := description.Split(differences)
	var faults []error
	for _, d := range harmful {
		remedy := fmt.Sprintf("leave out --%s to take over the others'", d.Field)
		if _, ours := p.Shared[d.Field]; !ours {
			remedy = "give --data with the columns of the others'"
		}
		faults = append(faults, fmt.Errorf("%s: %s", d, remedy))
	}
	if len(faults) == 0 {
		return nil
	}
	return cli.Usage(fmt.Errorf("this %s differs from that of --join:\n%w", p.Doing, errors.Join(faults...)))
}

// ask asks the addresses to join for the description; the result is empty if no member has one yet.
func (p *Peer) ask(ctx context.Context, std cli.Streams) (there description.Description, err error) {
	admission, tr, err := p.Outside(p.NewLog(std.Err))
	if err != nil {
		return there, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	begun := time.Now()
	for said := begun; ; {
		for _, address := range p.Join {
			timed, cancel := context.WithTimeout(ctx, askTimeout)
			found, err := admission.Inquire(timed, tr, address, p.Run, [32]byte{})
			cancel()
			if err == nil || len(found.Description.Fields) > 0 { // an older build has no description
				return found.Description, nil
			}
			if errors.Is(err, transport.ErrNotAdmitted) {
				return there, settings.Remedied(err)
			}
		}
		if p.Table.Target != "" || time.Since(begun) > p.MinPeersWait {
			return there, nil
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			fmt.Fprintf(std.Err, "nobody at --join says yet what this %s is of: asking on for %s\n", p.Doing, cli.Duration(p.MinPeersWait-time.Since(begun)))
		}
		select {
		case <-ctx.Done():
			return there, context.Cause(ctx)
		case <-time.After(askEvery):
		}
	}
}
