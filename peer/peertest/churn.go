package peertest

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer"
)

// Leave has peer i leave as a program that ends does, and waits until it has.
func (f *Flock) Leave(i int) {
	f.t.Helper()
	p, closeNetwork := f.depart(i)
	if err := p.Close(); err != nil {
		f.t.Errorf("peertest: closing peer %d: %v", i, err)
	}
	closeNetwork()
}

// depart counts peer i as gone.
func (f *Flock) depart(i int) (p *peer.Peer, closeNetwork func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[i] = true
	return f.Peers[i], f.closers[i]
}

// Crash takes peer i off the network in memory as kill -9 does: nobody hears a word
// of it. What is left of it in this process is cleared away in the background.
func (f *Flock) Crash(i int) {
	f.t.Helper()
	p, _ := f.depart(i)
	f.Network.Crash(p.Self())
	f.clearing.Go(func() { p.Close() }) // it may well complain: its network is gone
}

// Return starts a peer under the identity of peer i, which has crashed or left, in its
// place. It does not wait.
func (f *Flock) Return(i int) *peer.Peer {
	f.t.Helper()
	if slices.Contains(f.Living(), i) {
		f.t.Fatalf("peertest: peer %d has not gone", i)
	}
	p := f.start(i)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.gone, i)
	return p
}

// Living are the indices of the peers that have neither crashed nor left.
func (f *Flock) Living() (indices []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.Peers {
		if !f.gone[i] {
			indices = append(indices, i)
		}
	}
	return indices
}

// name is that of peer i on the network in memory.
func name(i int) string { return fmt.Sprintf("peer-%d", i) }
