package overlay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/status"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/topology"
)

// living is a run that lives: its members in the order of the ring, what they are called, and the links, active first.
type living struct {
	Members []map[string]any `json:"members,omitempty"`
	Links   [][2]int         `json:"links,omitempty"`
	names   []string
}

// ask asks a member for its run.
func (s settings) ask(errs io.Writer) (l living, overlays []*topology.Overlay, err error) {
	log := cli.NewLog(zapcore.WarnLevel, errs)
	members, err := status.Members(context.Background(), s.member, log)
	if err != nil {
		return l, nil, err
	}
	described, err := status.Description(context.Background(), s.member, log)
	if err != nil {
		return l, nil, err
	}
	shape := s.known()
	if said, ok := described.Value("topology"); ok {
		if shape, err = topology.ParseShape(said); err != nil {
			return l, nil, fmt.Errorf("the run's description: %w", err)
		}
	}
	ring, overlays := watch.RingOf(members, shape)
	places := make(map[topology.PeerID]int, len(ring))
	for i, m := range ring {
		places[m.ID] = i
		l.Members, l.names = append(l.Members, watch.Shown(m, time.Now())), append(l.names, cli.Cut(cli.Printable(cmp.Or(m.Name, m.ID.Short())), 16))
	}
	for _, overlay := range overlays {
		for e := range overlay.Edges() {
			l.Links = append(l.Links, [2]int{places[e.Active], places[e.Passive]})
		}
	}
	if len(l.Links) == 0 || len(ring) > maxPeers {
		return l, nil, fmt.Errorf("%s of run %s: want 2 to %d that train, of both roles", cli.Plural(uint64(len(members)), "member"), cli.Printable(s.member.Run), maxPeers)
	}
	return l, overlays, nil
}
