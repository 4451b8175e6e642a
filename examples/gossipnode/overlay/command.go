package overlay

import (
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	run "github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	defaultPeers = 64
	// maxPeers bounds --peers: the time for the spectral gap grows with its cube.
	maxPeers = 1000
)

// settings are the flags of the command topology.
type settings struct {
	peers  int
	active float64
	shape  string
	sites  int
	seed   uint64
	svg    string
	member run.Settings // of the member that is asked, with --join
}

// Command makes the command topology, which shows the links between peers.
func Command(std cli.Streams) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Show who talks to whom in a flock of a size, and how fast its models mix",
		Long: `Topology makes the roles and links that so many peers would have, and measures them.

  degree    the most links that one peer has
  diameter  the most links between two peers
  depth     the links from the peer in the middle to the farthest one
  load      models moved over each link, both ways together, when each active peer has
            started one exchange, and the most through one peer: times a model's bytes, bytes
            by link. The drawing shows it as the width of a line, --json as load_links
  gap       the spectral gap of the expected mixing matrix: 1 minus the second largest
            eigenvalue of the matrix that one exchange multiplies the models by in the
            mean (a random active averages with one of its links at random), times half
            the number of peers, which is how many exchanges give each peer one
  rounds    exchanges per peer, each counted at both ends, until the variance of the
            models is a millionth of what it was; the mean of 20 simulations in which
            random actives take their links in turn, as peers do

With --sites gap and rounds are of exchanges that all weigh the same. Peers exchange inside
a site oftener than that, and delegates speak for their sites: docs/design/054 has figures.

Roles are those of newcomers unless --active says how many are active. Where more than
two thirds are, the active ones are taken to be unreachable, as behind a NAT: reachable
ones would become passive. For the same reason no fewer than a third can be active.

With --join it shows a living run instead, as a member of it knows it: its members by their
names, their roles and links, as the dashboard does, in the shape that the run has. As with status it joins nothing, and
who shows a list or a key is asked for it.`,
		Example: `  gossipnode topology --peers 64
  gossipnode topology --peers 12 --svg ring.svg
  gossipnode topology --peers 31 --topology tree --svg tree.svg
  gossipnode topology --peers 100 --active 0.9 --json
  gossipnode topology --peers 16 --sites 2 --svg sites.svg
  gossipnode topology --join 192.0.2.7:4001 --svg run.svg`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.member.Load(cmd)
			if err != nil {
				return err
			}
			if err := s.validate(sources); err != nil {
				return err
			}
			return s.show(std)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&s.peers, "peers", defaultPeers, fmt.Sprintf("number of peers, 2 to %d", maxPeers))
	flags.Float64Var(&s.active, "active", 0, "share of active peers, as in 0.5 (default: what newcomers decide)")
	flags.StringVar(&s.shape, "topology", topology.Exponential.String(), cli.List(run.Shapes())+"; with --join it is what the run says, if it does")
	flags.IntVar(&s.sites, "sites", 1, "say at how many sites the peers are: links are inside them, and one of each class exchanges across")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the peers' identities and of the simulations")
	flags.StringVar(&s.svg, "svg", "", "draw the links into this file")
	s.member.RegisterMember(flags)
	cli.TakeFile(flags)
	return cmd
}

func (s settings) validate(from cli.Origins) error {
	var faults cli.Faults
	faults.Add(cli.Within("peers", s.peers, 2, maxPeers))
	faults = append(faults, s.member.Network.Faults()...)
	faults.Add(cli.Within("sites", s.sites, 1, s.peers))
	for _, name := range []string{"peers", "active", "sites"} {
		faults.If(len(s.member.Join) > 0 && from.Source(name) != cli.FromDefault, name, "is for a flock that is made up: with --join it is the run's")
	}
	shape, err := topology.ParseShape(s.shape)
	faults.If(err != nil, "topology", "%q: want %s", s.shape, cli.List(run.Shapes()))
	faults.If((shape == topology.Star || shape == topology.Ring) && from.Source("active") != cli.FromDefault, "active", "follows from --topology %s: leave it out", s.shape)
	actives := s.actives()
	switch given := from.Source("active") != cli.FromDefault; {
	case !given || len(faults) > 0:
	case !(s.active > 0 && s.active < 1):
		faults.Add(cli.Faultf("active", "%v: want a share between 0 and 1, as in 0.5", s.active))
	case actives == 0 || actives == s.peers:
		faults = append(faults, cli.Faultf("active", "%v: of %d peers that leaves one class empty: want %d to %d of them active",
			s.active, s.peers, leastActives(s.peers), s.peers-1))
	case actives < leastActives(s.peers):
		faults = append(faults, cli.Faultf("active", "%v: with fewer than a third active, passive peers become active: want at least %.2f",
			s.active, float64(leastActives(s.peers))/float64(s.peers)))
	}
	return from.Usage(faults...)
}

// actives is how many peers are to be active; 0 lets the peers decide.
func (s settings) actives() int { return int(math.Round(s.active * float64(s.peers))) }

// known is the shape, which validate has checked.
func (s settings) known() topology.Shape {
	shape, _ := topology.ParseShape(s.shape)
	return shape
}

// leastActives is the least number of active peers among n.
func leastActives(n int) int { return (n + 2) / 3 }

func (s settings) show(std cli.Streams) error {
	var lives living
	made, err := s.overlay()
	overlays := []*topology.Overlay{made}
	if len(s.member.Join) > 0 {
		lives, overlays, err = s.ask(std.Err)
	}
	if err != nil {
		return err
	}
	links := overlayLinks(overlays...)
	links.names = lives.names
	figures, err := links.measure(s.seed)
	if err != nil {
		return err
	}
	if s.svg != "" {
		if err := os.WriteFile(s.svg, svg(links, figures), 0o644); err != nil {
			return fmt.Errorf("drawing the links: %w", err)
		}
	}
	return cli.Print(report{figures, lives, links}, s.member.JSON, std)
}

// overlay makes the overlay of peers whose identities depend on the seed.
func (s settings) overlay() (*topology.Overlay, error) {
	members := make([]topology.Member, s.peers)
	actives := s.actives()
	for i := range members {
		m := &members[i]
		m.ID = topology.PeerID(fmt.Sprintf("%d/%d", s.seed, i))
		if s.sites > 1 {
			m.Place.Site = fmt.Sprint(i % s.sites)
		}
		switch {
		case actives == 0: // peers that join one by one
		case i < actives:
			m.Role, m.Unreachable = topology.Active, 3*actives > 2*s.peers
		default:
			m.Role = topology.Passive
		}
	}
	view, err := s.known().View(members)
	if err != nil {
		return nil, fmt.Errorf("making the flock: %w", err)
	}
	return topology.NewOverlay(view)
}
