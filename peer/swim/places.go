package swim

import (
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// places bound the inbound conversations: of all peers together, and of those of one block
// of addresses, so that it takes many blocks to hold all of them. A peer that finds none
// free waits, since a whole flock may join at once.
type places struct {
	blockOf func(transport.PeerID) string // empty if it is not known: such peers are of one block
	all     chan struct{}

	mu     sync.Mutex
	blocks map[string]*blockPlaces
}

// blockPlaces are the places of one block, while a peer of it has one or waits for one.
type blockPlaces struct {
	taken chan struct{}
	users int
}

func newPlaces(over transport.Transport) *places {
	return &places{blockOf: over.Block, all: make(chan struct{}, maxAllSyncs), blocks: make(map[string]*blockPlaces)}
}

// take waits for a place for a peer, for at most syncTimeout. leave gives it back, and is
// nil if there was none in time.
func (p *places) take(peer transport.PeerID, closing <-chan struct{}) (leave func()) {
	block := p.blockOf(peer)
	timer := time.NewTimer(syncTimeout)
	defer timer.Stop()
	of := p.enter(block)
	for _, wanted := range []chan struct{}{of.taken, p.all} {
		select {
		case wanted <- struct{}{}:
			continue
		case <-timer.C:
		case <-closing:
		}
		if wanted == p.all {
			<-of.taken
		}
		p.exit(block, of)
		return nil
	}
	return func() {
		<-p.all
		<-of.taken
		p.exit(block, of)
	}
}

func (p *places) enter(block string) *blockPlaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.blocks[block]
	if of == nil {
		of = &blockPlaces{taken: make(chan struct{}, maxBlockSyncs)}
		p.blocks[block] = of
	}
	of.users++
	return of
}

func (p *places) exit(block string, of *blockPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(p.blocks, block)
	}
}
