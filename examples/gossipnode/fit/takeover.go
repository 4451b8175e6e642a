package fit

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

// share gathers the flags that all members give alike.
func share(o *options, flags *pflag.FlagSet) {
	o.Shared = map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		own := slices.Contains([]string{"data", "format", "memory", "on-disk", "tolerance", "encoding", "separator", "decimal", "missing"}, f.Name)
		if topic := cli.Topic(f); own || topic != topicRows && topic != topicLearner {
			return
		}
		o.Shared[f.Name] = cli.TextOf(f)
	})
}

// descriptionOf is what members have in common: one that is set up otherwise is not let in, and one
// that is not set up takes it over.
func descriptionOf(o *options) description.Description {
	fields := []description.Field{{Name: minPeersFlag, Value: strconv.Itoa(o.MinPeers), Local: true}}
	if o.Columns != "" {
		fields = append(fields, description.Field{Name: "columns", Value: o.Columns})
	}
	for flag, value := range o.Shared {
		if len(value) <= description.MaxValue { // of a longer one, members are told when they meet
			fields = append(fields, description.Field{Name: flag, Value: value})
		}
	}
	return description.Of(o.Run, fields...)
}

// takeOver asks the addresses to join what the fit is, and sets the flags that nobody has given as
// they are there. Without a target it asks on, as one that was started before the others.
func takeOver(ctx context.Context, o *options, from cli.Origins, flags *pflag.FlagSet, std cli.Streams) error {
	there, err := ask(ctx, o, std)
	if err != nil {
		return err
	}
	for _, f := range there.Fields {
		flag := flags.Lookup(f.Name)
		if _, shared := o.Shared[f.Name]; flag == nil || from.Source(f.Name) != cli.FromDefault || !shared && f.Name != minPeersFlag {
			continue
		}
		if err := cli.SetText(flag, f.Value); err != nil {
			return fmt.Errorf("taking over --%s %q from the others: %w", f.Name, f.Value, err)
		}
	}
	share(o, flags)
	return unlike(o.Shared, descriptionOf(o).Differences(there))
}

// unlike is the fault of usage of flags that the others have given otherwise; nil if none are.
func unlike(shared map[string]string, differences []description.Difference) error {
	harmful, _ := description.Split(differences)
	var faults []error
	for _, d := range harmful {
		remedy := fmt.Sprintf("leave out --%s to take over the others'", d.Field)
		if _, ours := shared[d.Field]; !ours {
			remedy = "give --data with the columns of the others'"
		}
		faults = append(faults, fmt.Errorf("%s: %s", d, remedy))
	}
	if len(faults) == 0 {
		return nil
	}
	return cli.Usage(fmt.Errorf("this fit is another than that of --join:\n%w", errors.Join(faults...)))
}

// ask asks the addresses to join what the fit is; nobody may have said so.
func ask(ctx context.Context, o *options, std cli.Streams) (there description.Description, err error) {
	admission, tr, err := o.Outside(o.NewLog(std.Err))
	if err != nil {
		return there, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	begun := time.Now()
	for said := begun; ; {
		for _, address := range o.Join {
			timed, cancel := context.WithTimeout(ctx, askTimeout)
			found, err := admission.Inquire(timed, tr, address, o.Run, [32]byte{})
			cancel()
			if err == nil || len(found.Description.Fields) > 0 { // one of an older build says nothing
				return found.Description, nil
			}
			if errors.Is(err, transport.ErrNotAdmitted) {
				return there, settings.Remedied(err)
			}
		}
		if o.Table.Target != "" || time.Since(begun) > o.MinPeersWait {
			return there, nil
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			fmt.Fprintf(std.Err, "nobody at --join says yet what is learned: asking on for %s\n", cli.Duration(o.MinPeersWait-time.Since(begun)))
		}
		select {
		case <-ctx.Done():
			return there, context.Cause(ctx)
		case <-time.After(askEvery):
		}
	}
}
