// Package flock starts the members of the gallery's flocks on this machine, where a service starts one: each listens on
// loopback and joins at the first.
package flock

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"sync"

	"github.com/seed-97356399/murmuration/peer"
)

// Main is a program of the gallery: it says what it has seen, and draws that into the file that its argument names.
func Main(usual string, run func(ctx context.Context, out io.Writer, picture string) error) {
	if err := run(context.Background(), os.Stdout, append(os.Args, usual)[1]); err != nil {
		log.Fatal(err)
	}
}

// Loopback is where members listen.
var Loopback = []string{"127.0.0.1:0"}

// Nodes has n nodes join, and calls what each does, once all are there, on a goroutine of its own. They are closed once all
// have returned.
func Nodes(ctx context.Context, n int, network peer.Network, do func(i int, node *peer.Node) error) error {
	return together(n, func(join []string) (*peer.Node, error) {
		network.Listen, network.Join = Loopback, join
		return peer.Join(ctx, network)
	}, func(i int, node *peer.Node) error {
		if err := node.WaitMembers(ctx, n); err != nil {
			return err
		}
		return do(i, node)
	})
}

// Peers is Nodes for peers, whose configuration differs in what config says.
func Peers(ctx context.Context, n int, config func() peer.Config, do func(i int, p *peer.Peer) error) error {
	return together(n, func(join []string) (*peer.Peer, error) {
		c := config()
		c.Network.Listen, c.Join = Loopback, join
		return peer.Start(ctx, c)
	}, do)
}

// member is a node or a peer.
type member interface {
	JoinAddresses() []string
	Close() error
}

func together[M member](n int, start func(join []string) (M, error), do func(i int, m M) error) error {
	var join []string
	var all sync.WaitGroup
	errs := make([]error, n)
	defer all.Wait()
	for i := range n {
		m, err := start(join)
		if err != nil {
			return err
		}
		defer m.Close()
		join = m.JoinAddresses()[:1]
		all.Go(func() { errs[i] = do(i, m) })
	}
	all.Wait()
	return errors.Join(errs...)
}
