package peertest

import (
	"fmt"

	"github.com/seed-97356399/murmuration/peer"
)

// Leave has peer i leave as a program that ends does, and waits until it has.
func (f *Flock) Leave(i int) {
	f.t.Helper()
	f.gone[i] = true
	if err := f.Peers[i].Close(); err != nil {
		f.t.Errorf("peertest: closing peer %d: %v", i, err)
	}
	f.closers[i]()
}

// Crash takes peer i off the network in memory as kill -9 does: nobody hears a word
// of it. What is left of it in this process is cleared away in the background.
func (f *Flock) Crash(i int) {
	f.t.Helper()
	f.gone[i] = true
	f.Network.Crash(f.Peers[i].Self())
	p := f.Peers[i]
	f.clearing.Go(func() { p.Close() }) // it may well complain: its network is gone
}

// Return starts a peer under the identity of peer i, which has crashed or left, in its
// place. It does not wait.
func (f *Flock) Return(i int) *peer.Peer {
	f.t.Helper()
	if !f.gone[i] {
		f.t.Fatalf("peertest: peer %d has not gone", i)
	}
	delete(f.gone, i)
	return f.start(i)
}

// Living are the indices of the peers that have neither crashed nor left.
func (f *Flock) Living() (indices []int) {
	for i := range f.Peers {
		if !f.gone[i] {
			indices = append(indices, i)
		}
	}
	return indices
}

// name is that of peer i on the network in memory.
func name(i int) string { return fmt.Sprintf("peer-%d", i) }
