package arrival

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/atomicfile"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A peer that starts anew knows only the members that it is configured to join, and these
// could show it a false flock. So it remembers partners of earlier lives, and looks for
// them too.

const (
	// MaxPartners bounds those that are remembered.
	MaxPartners = 64
	// maxPartnersFile bounds their file, in bytes.
	maxPartnersFile = 64 << 10
	// writeEvery is the least time between two writings of it.
	writeEvery = 30 * time.Second
)

// Partner is a member with which exchanges succeeded, and its addresses.
type Partner struct {
	ID        transport.PeerID
	Addresses []string
}

// parsePartners reads lines of an id and addresses. Malformed lines are skipped.
func parsePartners(content []byte) (partners []Partner) {
	for line := range bytes.Lines(content) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || len(fields) > 1+transport.MaxAddresses || transport.CheckID(transport.PeerID(fields[0])) != nil {
			continue
		}
		if len(partners) == MaxPartners {
			break
		}
		partners = append(partners, Partner{ID: transport.PeerID(fields[0]), Addresses: fields[1:]})
	}
	return partners
}

func formatPartners(partners []Partner) []byte {
	var text []byte
	for _, p := range partners {
		text = fmt.Appendf(text, "%s %s\n", p.ID, strings.Join(p.Addresses, " "))
	}
	return text
}

// Memory is the file of partners. It is for one goroutine.
type Memory struct {
	// Past are the partners of earlier lives.
	Past []Partner

	path    string // empty if nothing is remembered
	written time.Time
	changed bool
	log     *zap.Logger
}

// IDs are those of the partners of earlier lives.
func (m *Memory) IDs() (ids []transport.PeerID) {
	for _, old := range m.Past {
		ids = append(ids, old.ID)
	}
	return ids
}

// Recall reads the partners of earlier lives from a file beside that of identities, and adds them to
// those that are known. An empty path means no file.
func Recall(identities string, known []Partner, log *zap.Logger) *Memory {
	m := &Memory{Past: known, log: log}
	if identities == "" {
		return m
	}
	m.path = identities + ".partners"
	file, err := os.Open(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m
	}
	var content []byte
	if err == nil {
		defer file.Close()
		content, err = io.ReadAll(io.LimitReader(file, maxPartnersFile))
	}
	if err != nil {
		log.Warn("cannot read the partners of earlier runs", zap.Error(err))
	}
	for _, p := range parsePartners(content) {
		if len(m.Past) < MaxPartners && !slices.ContainsFunc(known, func(k Partner) bool { return k.ID == p.ID }) {
			m.Past = append(m.Past, p)
		}
	}
	return m
}

// Proved records a successful exchange, and whether its partner was not yet among the good
// ones.
func (m *Memory) Proved(another bool) {
	m.changed = m.changed || another || m.written.IsZero()
}

// Write writes the file, partners of this life that are members before those of earlier
// lives. It does so if there is news and enough time has passed, or if it is the last time.
func (m *Memory) Write(now time.Time, members []transport.Record, good []transport.PeerID, last bool) {
	if m.path == "" || !m.changed || !last && now.Sub(m.written) < writeEvery {
		return
	}
	unfit := func(address string) bool { return transport.CheckAddress(address) != nil } // would break the format
	var partners []Partner
	for _, r := range members {
		if len(r.Addresses) > 0 && !slices.ContainsFunc(r.Addresses, unfit) && slices.Contains(good, r.Peer) {
			partners = append(partners, Partner{r.Peer, r.Addresses})
		}
	}
	for _, old := range m.Past {
		if !slices.ContainsFunc(partners, func(p Partner) bool { return p.ID == old.ID }) {
			partners = append(partners, old)
		}
	}
	m.changed, m.written = false, now
	if err := atomicfile.Write(m.path, formatPartners(partners[:min(len(partners), MaxPartners)])); err != nil {
		m.log.Warn("partners will be forgotten when this peer ends", zap.Error(err))
	}
}
