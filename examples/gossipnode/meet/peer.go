// Package meet is how a peer that computes sums finds the others: it takes over their settings, and waits for them.
package meet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/topology"
)

// Peer is a peer that computes sums with others.
type Peer struct {
	settings.Settings
	// Doing is their task in one word, such as fit.
	Doing string
	// Topics are the topics of the flags that all members must give alike; Shared has these flags.
	Topics []string
	Shared map[string]string
	// Columns describes the columns of --data in few characters, for comparison; "" compares nothing.
	Columns string
	// Local tells that all peers are on this machine.
	Local bool
}

const (
	topologyFlag    = "topology"
	defaultMinPeers = 2
	defaultWait     = 10 * time.Minute // users start the others by hand
)

// Register adds the flags for finding the others.
func (p *Peer) Register(flags *pflag.FlagSet) {
	p.RegisterSums(flags, topologyFlag)
	flags.Lookup(topologyFlag).Usage = "by which shape numbers are summed, the same for all: " + cli.List(shapes()) + " (a tree where sums have masks; docs/TUNING.md)"
	for flag, value := range map[string]string{minPeersFlag: strconv.Itoa(defaultMinPeers), "min-peers-wait": defaultWait.String(), topologyFlag: shapes()[0]} {
		f := flags.Lookup(flag)
		f.DefValue = value
		_ = f.Value.Set(value) // fails only if the value is not a number
	}
}

// shapes are the values of --topology: a star sums nothing by itself.
func shapes() []string {
	return slices.DeleteFunc(settings.Shapes(), func(name string) bool { return name == topology.Star.String() })
}

// SumFaults are the errors in the flags for finding the others and for summing with them.
func (p *Peer) SumFaults() []error {
	return append(p.Network.Faults(), cli.OneOf(topologyFlag, p.Topology, shapes()))
}

// Joiner joins the others. leave ends that, and returns how many bytes this peer has sent.
type Joiner func(ctx context.Context, tell watch.Reporter) (flock table.Flock, leave func() (sent uint64, err error), err error)

// Joiner returns a Joiner that waits for --min-peers members.
func (p *Peer) Joiner(logs io.Writer) Joiner {
	return func(ctx context.Context, tell watch.Reporter) (table.Flock, func() (uint64, error), error) {
		log := p.NewLog(logs)
		key, err := p.Lasting(log)
		if err != nil {
			return nil, nil, cli.Config(err)
		}
		admission, err := p.Admission(log)
		if err != nil {
			return nil, nil, cli.Config(err)
		}
		bridged := p2pnet.BridgeLogs(log)
		network := peer.Network{
			Run: p.Run, Description: p.description().Fields, Join: p.Join, Log: log,
			Identity: key, Listen: p.Listen, KnownPeers: p.KnownPeers(), Admission: admission,
		}
		joining := rows.Joining{Settings: p.Settings, Network: network, Together: p.Local, Started: func(node *peer.Node) {
			said := fmt.Sprintf("waiting for %s", cli.Plural(uint64(p.MinPeers), "peer"))
			if len(p.Join) == 0 {
				t := token.Of(p.Run, string(node.Self()), node.JoinAddresses())
				t.Expires = time.Now().Add(token.Lasts).Unix()
				said += fmt.Sprintf("; others come with --data of their own and --join %s", t)
				if p.Keyed() {
					said += " --run-key FILE"
				}
			}
			tell(watch.Report{Kind: watch.ReportStarted, Peer: string(node.Self()), Addresses: node.JoinAddresses(), Said: said})
		}}
		node, err := joining.Join(ctx)
		if err != nil {
			bridged()
			if mismatch, ok := errors.AsType[*description.MismatchError](err); ok {
				err = p.unlike(mismatch.Differences)
			}
			return nil, nil, err
		}
		leave := func() (uint64, error) {
			defer bridged()
			sent := node.Stats().Exchanges.BytesSent
			return sent, node.Close()
		}
		return node, leave, nil
	}
}
