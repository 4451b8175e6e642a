package fit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/table"
)

// joinFlock is the joiner of a real peer: it waits for --min-peers members.
func joinFlock(o options, logs io.Writer) joiner {
	return func(ctx context.Context, tell watch.Reporter) (table.Flock, func() (uint64, error), error) {
		log := o.NewLog(logs)
		key, err := o.Lasting(log)
		if err != nil {
			return nil, nil, cli.Config(err)
		}
		admission, err := o.Admission(log)
		if err != nil {
			return nil, nil, cli.Config(err)
		}
		bridged := p2pnet.BridgeLogs(log)
		network := peer.Network{
			Run: o.Run, Description: descriptionOf(&o).Fields, Join: o.Join, Log: log,
			Identity: key, Listen: o.Listen, KnownPeers: o.KnownPeers(), Admission: admission,
		}
		joining := rows.Joining{Settings: o.Settings, Network: network, Together: o.Part >= 0, Started: func(p *peer.Node) {
			said := fmt.Sprintf("waiting for %s", cli.Plural(uint64(o.MinPeers), "peer"))
			if len(o.Join) == 0 {
				t := token.Of(o.Run, string(p.Self()), p.JoinAddresses())
				t.Expires = time.Now().Add(token.Lasts).Unix()
				said += fmt.Sprintf("; others come with --data of their own and --join %s", t)
				if o.Keyed() {
					said += " --run-key FILE"
				}
			}
			tell(watch.Report{Kind: watch.ReportStarted, Peer: string(p.Self()), Addresses: p.JoinAddresses(), Said: said})
		}}
		p, err := joining.Join(ctx)
		if err != nil {
			bridged()
			if mismatch, ok := errors.AsType[*description.MismatchError](err); ok {
				err = unlike(o.Shared, mismatch.Differences)
			}
			return nil, nil, err
		}
		leave := func() (uint64, error) {
			defer bridged()
			sent := p.Stats().Exchanges.BytesSent
			return sent, p.Close()
		}
		return p, leave, nil
	}
}
