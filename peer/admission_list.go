package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// maxAllowFile bounds the file of a list, in bytes.
	maxAllowFile = 1 << 20
	// maxAllowed bounds the ids on it.
	maxAllowed = 1 << 14
	// maxIDText bounds an id.
	maxIDText = 128
)

// allowed is a list as it was read.
type allowed struct {
	ids  map[seam.PeerID]struct{}
	file fs.FileInfo
}

func (a *allowed) has(id seam.PeerID) bool {
	_, ok := a.ids[id]
	return ok
}

// readAllowed reads the list in a file.
func readAllowed(path string, check func(seam.PeerID) error) (*allowed, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of peers: %w: make the file, with the id of a peer in each line", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the list of peers: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxAllowFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the list of peers: %w", err)
	}
	if len(content) > maxAllowFile {
		return nil, fmt.Errorf("reading the list of peers: %s has more than %d bytes", path, maxAllowFile)
	}
	ids, err := parseAllowed(content, check)
	if err != nil {
		return nil, fmt.Errorf("reading the list of peers: %s: %w", path, err)
	}
	return &allowed{ids: ids, file: info}, nil
}

// parseAllowed reads an id a line. What follows a # is a comment.
func parseAllowed(content []byte, check func(seam.PeerID) error) (map[seam.PeerID]struct{}, error) {
	ids := make(map[seam.PeerID]struct{})
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text, _, _ := strings.Cut(string(line), "#")
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		id := seam.PeerID(text)
		if err := checkID(id); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if err := check(id); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(ids) >= maxAllowed {
			return nil, fmt.Errorf("line %d: more than %d peers", number, maxAllowed)
		}
		ids[id] = struct{}{}
	}
	return ids, nil
}

// checkID tells what cannot be the id of a peer over any transport.
func checkID(id seam.PeerID) error {
	if len(id) > maxIDText {
		return fmt.Errorf("an id of %d bytes, at most %d: put one id in each line", len(id), maxIDText)
	}
	for _, r := range id {
		if r <= ' ' || r > '~' {
			return errors.New("not the id of a peer: put one id in each line, as gossipnode keygen prints it")
		}
	}
	return nil
}

// reload reads the list again if its file is another one by now. It returns those
// who have been taken off.
func (g *guard) reload() (removed []seam.PeerID, changed bool, err error) {
	old := g.list.Load()
	info, err := os.Stat(g.admission.Allow)
	if err != nil {
		return nil, false, fmt.Errorf("looking at the list of peers: %w", err)
	}
	if os.SameFile(info, old.file) && info.ModTime().Equal(old.file.ModTime()) && info.Size() == old.file.Size() {
		return nil, false, nil
	}
	list, err := readAllowed(g.admission.Allow, g.check)
	if err != nil {
		return nil, false, err
	}
	g.list.Store(list)
	for id := range old.ids {
		if !list.has(id) && id != g.self {
			removed = append(removed, id)
		}
	}
	return removed, true, nil
}

// watchList looks after the list until the peer stops, and shows those out who have
// been taken off.
func (p *Peer) watchList() {
	ticker := time.NewTicker(p.guard.admission.Every)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-p.running.Done():
			return
		case <-ticker.C:
		}
		removed, changed, err := p.guard.reload()
		if err != nil {
			if err.Error() != said {
				said = err.Error()
				p.log.Warn("the list of peers cannot be read: the one read before holds until that is mended", zap.Error(err))
			}
			continue
		}
		said = ""
		if changed {
			p.log.Info("the list of peers has changed", zap.Int("peers", len(p.guard.list.Load().ids)), zap.Int("removed", len(removed)))
			p.showOut(removed)
		}
	}
}

// showOut ends every conversation with peers that are no longer admitted, and has the
// loop take the members anew.
func (p *Peer) showOut(removed []seam.PeerID) {
	for _, id := range removed {
		p.log.Warn("a peer has been taken off the list: it is disconnected, and no member here any more", zap.String("peer", string(id)))
		p.guard.streams.reset(id)
		if far, ok := p.transport.(seam.Disconnector); ok && p.ownsTransport {
			far.Disconnect(id)
		}
	}
	p.notify(notice{corrected: true})
}
