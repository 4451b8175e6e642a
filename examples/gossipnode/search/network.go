package search

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/search"
)

// network is a member's node among those that search, and what the nodes of its sub-flocks share with it.
type network struct {
	node      *peer.Node
	transport *p2pnet.Transport
	base      peer.Network
	bridged   func()
}

// maxAddresses bounds the addresses that are tried of a member.
const maxAddresses = 16

// join joins those that search.
func join(ctx context.Context, o options, s *sought, logs io.Writer, tell watch.Reporter) (n *network, err error) {
	log := o.NewLog(logs)
	key, err := o.Lasting(log)
	if err != nil {
		return nil, cli.Config(err)
	}
	n = &network{bridged: p2pnet.BridgeLogs(log)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.base.Admission, err = o.Admission(log); err != nil {
		return n, cli.Config(err)
	}
	// A sub-flock's members do not begin at the same moment: who asks before another has begun is refused, and asks again.
	quiet := log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))
	n.transport, err = p2pnet.New(p2pnet.Config{Identity: key, Listen: o.Listen, Known: o.KnownPeers(), Log: quiet})
	if err != nil {
		return n, cli.Config(err)
	}
	n.base.Run, n.base.Log, n.base.Transport = o.Run, quiet, n.transport
	own := n.base
	own.Log, own.Join, own.Description = log, o.Join, []description.Field{{Name: "search", Value: s.digest()}}
	if len(o.Join) > 0 {
		o.MinPeers = max(o.MinPeers, 2) // else it would begin a search of its own before it has met the others
	}
	joining := rows.Joining{Settings: o.Settings, Network: own, Together: o.shared, Started: func(node *peer.Node) {
		said := fmt.Sprintf("waiting for %s", cli.Plural(uint64(o.MinPeers), "member"))
		if addresses := node.JoinAddresses(); len(addresses) > 0 && !o.shared {
			said += "; others come with the same file and --join " + addresses[0]
		}
		tell(watch.Report{Kind: watch.ReportStarted, Peer: string(node.Self()), Addresses: node.JoinAddresses(), Said: said})
	}}
	n.node, err = joining.Join(ctx)
	if _, differs := errors.AsType[*description.MismatchError](err); differs {
		err = cli.Usage(fmt.Errorf("the members at --join search another space, or train otherwise: give the same file as theirs: %w", err))
	}
	return n, err
}

// subFlock is how the members of a job meet: in a run of their own, over the transport that is there.
func (n *network) subFlock(j search.Job, present []search.Member) peer.Network {
	sub := n.base
	sub.Run, sub.Sums.Masked = runOf(n.base.Run, j), new(false)
	for _, m := range present {
		if placeOf(j, m.Name) >= 0 && m.Name != string(n.node.Self()) {
			for _, a := range m.Addresses[:min(len(m.Addresses), maxAddresses)] {
				if p2pnet.CheckJoin(a) == nil {
					sub.Join = append(sub.Join, a)
				}
			}
		}
	}
	return sub
}

// close leaves.
func (n *network) close() (err error) {
	if n.node != nil {
		err = n.node.Close()
	}
	if n.transport != nil {
		err = errors.Join(err, n.transport.Close())
	}
	n.bridged()
	return err
}
