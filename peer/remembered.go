package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// A peer that starts anew knows nobody but those that it is told to join, and these
// could show it a flock of their own. So it remembers, beside the identities of
// Network.KnownPeers, partners of earlier lives, and looks for them too.

const (
	// partnersSuffix is appended to Network.KnownPeers for the file of partners.
	partnersSuffix = ".partners"
	// maxPartnersFile bounds that file, in bytes.
	maxPartnersFile = 64 << 10
	// rememberEvery is the least time between two writings of it.
	rememberEvery = 30 * time.Second
	// visitTimeout bounds the visit of a remembered partner.
	visitTimeout = 10 * time.Second
)

// partner is somebody with whom exchanges went well, and where it was.
type partner struct {
	id        seam.PeerID
	addresses []string
}

// parsePartners reads lines of an id and addresses. What is malformed is left out: the
// file is nobody's to edit.
func parsePartners(content []byte) (partners []partner) {
	for line := range bytes.Lines(content) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || len(fields) > 1+seam.MaxAddresses || checkID(seam.PeerID(fields[0])) != nil {
			continue
		}
		if len(partners) == maxGood {
			break
		}
		partners = append(partners, partner{id: seam.PeerID(fields[0]), addresses: fields[1:]})
	}
	return partners
}

// unfit tells whether an address would be taken for something else in the file.
func unfit(address string) bool { return seam.CheckAddress(address) != nil }

func formatPartners(partners []partner) []byte {
	var text []byte
	for _, p := range partners {
		text = fmt.Appendf(text, "%s %s\n", p.id, strings.Join(p.addresses, " "))
	}
	return text
}

// partnersFile is where partners are remembered, "" if nowhere.
func (p *Peer) partnersFile() string {
	if p.config.Network.KnownPeers == "" {
		return ""
	}
	return p.config.Network.KnownPeers + partnersSuffix
}

// readPartners reads the partners of earlier lives.
func (p *Peer) readPartners() []partner {
	path := p.partnersFile()
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.log.Warn("cannot read the partners of earlier runs", zap.Error(err))
		}
		return nil
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxPartnersFile))
	if err != nil {
		p.log.Warn("cannot read the partners of earlier runs", zap.Error(err))
	}
	return parsePartners(content)
}

// memory is what the loop knows of partners. It belongs to the loop.
type memory struct {
	past    []partner // of earlier lives
	written time.Time
	changed bool
}

// remember writes the partners down, those of this life that are members before those
// of earlier ones, if there is news and it is time, or the last time.
func (l *loop) remember(now time.Time, members []seam.Record) {
	path := l.peer.partnersFile()
	if path == "" || !l.memory.changed || !l.leaving && now.Sub(l.memory.written) < rememberEvery {
		return
	}
	var partners []partner
	for _, m := range members {
		if len(m.Addresses) > 0 && !slices.ContainsFunc(m.Addresses, unfit) && slices.Contains(l.anchors.good, topology.PeerID(m.Peer)) {
			partners = append(partners, partner{m.Peer, m.Addresses})
		}
	}
	for _, old := range l.memory.past {
		if !slices.ContainsFunc(partners, func(p partner) bool { return p.id == old.id }) {
			partners = append(partners, old)
		}
	}
	l.memory.changed, l.memory.written = false, now
	if err := p2pnet.ReplaceFile(path, formatPartners(partners[:min(len(partners), maxGood)])); err != nil {
		l.log.Warn("partners will be forgotten when this peer ends", zap.Error(err))
	}
}

// proved notes a partner with whom an exchange went well.
func (l *loop) proved(id topology.PeerID) {
	before := len(l.anchors.good)
	l.anchors.proved(id, func(id topology.PeerID) bool { return l.peer.flock.here(seam.PeerID(id)) })
	if len(l.anchors.good) != before || !l.memory.changed && l.memory.written.IsZero() {
		l.memory.changed = true
	}
}

// revisit looks for the partners of earlier lives that the members which were joined
// do not know of.
func (p *Peer) revisit(past []partner) {
	if len(past) == 0 {
		return
	}
	patience := time.NewTimer(JoinPatience)
	defer patience.Stop()
	select {
	case <-patience.C: // whom the others know of is no matter
	case <-p.running.Done():
		return
	}
	for _, old := range past {
		if p.running.Err() != nil {
			return
		}
		if p.flock.here(old.id) || old.id == p.Self() {
			continue
		}
		if err := p.visit(old); err != nil {
			p.log.Debug("a partner of an earlier run does not answer", zap.String("peer", string(old.id)), zap.Error(err))
		}
	}
}

// visit joins by a partner of an earlier life.
func (p *Peer) visit(old partner) error {
	ctx, cancel := context.WithTimeout(p.running, visitTimeout)
	defer cancel()
	p.transport.Learn(old.id, old.addresses)
	if err := p.enter(ctx, old.id); err != nil {
		return err
	}
	p.log.Info("found a partner of an earlier run", zap.String("peer", string(old.id)))
	return nil
}
