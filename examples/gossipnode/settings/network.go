package settings

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// Network has the peer's identity, its addresses, and the flock that it trains with.
type Network struct {
	Listen       []string
	Join         []string
	Key          string
	Allow        string
	RunKey       string
	Operator     string
	Run          string
	Membership   string
	GossipKey    string
	Relay        []string
	RelayService bool
	HolePunch    bool
	Unreachable  string
	Lanes        int
	AloneOK      bool
	Location
	Gathering
	Invitation
}

// Location is where in the network a peer is, and what its link to others takes.
type Location struct {
	Site       string
	UplinkMbit float64
}

// Gathering says for how many members a peer waits before it trains, how long, and what it has learned by then.
type Gathering struct {
	JoinWait     time.Duration
	MinPeers     int
	MinPeersWait time.Duration
	// TakenSize tells that the size of the model or of a batch was taken from the run that is joined.
	TakenSize bool
	// Described is the description of the run, signed by its founder, once it is known.
	Described description.Signed
	// Identity is the identity of this peer, already known to others, if --key gives none.
	Identity ed25519.PrivateKey
}

// Invitation is the content of a token but for the addresses and the run's name.
type Invitation struct {
	Founder string // who began the run
	Secret  []byte // the run's key, nil if it has none or the token does not tell it
}

func (s *Network) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.Listen, "listen", []string{defaultListen}, "host:port or multiaddr to listen on; repeatable")
	flags.StringArrayVar(&s.Join, "join", nil, "member to join: host:port, multiaddr or token of invite; repeatable")
	flags.DurationVar(&s.JoinWait, "join-wait", defaultJoinWait, "how long to ask --join what the run is before this peer trains alone, on its own settings")
	flags.StringVar(&s.Key, "key", "", "file of the identity, made by keygen (default: a new one each time)")
	flags.StringVar(&s.Allow, "allow", "", "file of the ids of the peers that may take part, one a line, read again when it changes (default: all)")
	flags.StringVar(&s.RunKey, "run-key", "", "file of a key that all peers of the run share, made by keygen --run-key: who does not know it is kept out")
	flags.StringVar(&s.Operator, "operator", "", "peer id of who may pause, stop and change the run, the same for all peers; see control (default: nobody)")
	flags.StringVar(&s.Run, "run", DefaultRun, "name of what is trained together, the same for all peers")
	flags.IntVar(&s.MinPeers, "min-peers", 1, "begin to train when so many members are here, this one included")
	flags.StringVar(&s.Membership, membershipFlag, CarrierAuto, "what news of members travels by: "+cli.List(carriers())+fmt.Sprintf(" (datagrams in a flock of more than %d)", swim.WideAbove))
	flags.StringVar(&s.GossipKey, gossipKeyFlag, "", "`file` of the keys that encrypt news of members, one of 64 hexadecimal digits a line, the first to encrypt with; the same for all peers (default: none)")
	flags.StringArrayVar(&s.Relay, relayFlag, nil, "multiaddr with /p2p/ID of a member that runs with --relay-service, through which others reach this peer if they cannot dial it (behind a NAT); repeatable")
	flags.BoolVar(&s.RelayService, "relay-service", false, "pass on the connections of members that cannot be dialled, and tell others whether they can be; all that goes through the relay goes through this machine")
	flags.BoolVar(&s.HolePunch, "hole-punch", false, "try to make connections through a relay direct; both ends need it")
	flags.Float64Var(&s.UplinkMbit, uplinkFlag, 0, "`MBPS`: send at most so many Mbit/s, with all that belongs to this peer together (default: as much as the link takes)")
	flags.StringVar(&s.Site, siteFlag, "", "`NAME` of the network that this peer shares with others, such as an office: exchanges are oftener inside it than across")
	flags.StringVar(&s.Unreachable, unreachableFlag, UnreachableAuto, "whether others cannot dial this peer, so that it begins its exchanges itself: "+cli.List(unreachables())+" (a relay of the run that can be dialled from here finds out)")
	flags.Lookup(unreachableFlag).NoOptDefVal = UnreachableYes
	flags.IntVar(&s.Lanes, LanesFlag, 0, fmt.Sprintf("connections that an exchange uses at once, 1 to %d; of two peers the smaller number counts; 0: one, and %d where the link is fast and long (docs/TUNING.md)", MaxLanes, peer.WideLanes))
	flags.BoolVar(&s.AloneOK, "alone-ok", false, "end with exit code 0 even if --join has reached nobody")
	flags.DurationVar(&s.MinPeersWait, "min-peers-wait", defaultMinPeersWait, "begin to train after this time whoever is here")
}

func (s Network) Faults() []error {
	var faults cli.Faults
	faults.If(len(s.Run) == 0 || len(s.Run) > transport.MaxRunName, "run", "has %d bytes: want 1 to %d", len(s.Run), transport.MaxRunName)
	faults.If(s.MinPeers < 1 || s.MinPeers > MaxPeers, "min-peers", "%d: want 1 to %d", s.MinPeers, MaxPeers)
	faults.If(s.JoinWait < 0, "join-wait", "%s: want a time that is not negative", s.JoinWait)
	faults.If(s.MinPeersWait < 0, "min-peers-wait", "%s: want a time that is not negative", s.MinPeersWait)
	faults.If(s.Operator != "" && !strings.HasPrefix(s.Operator, PeerIDPrefix), "operator", "%q: want a peer id, as keygen prints it: %s...", s.Operator, PeerIDPrefix)
	faults.Add(cli.OneOf(membershipFlag, s.Membership, carriers()))
	_, err := s.gossipKeys()
	faults.Add(err)
	faults.Add(cli.OneOf(unreachableFlag, s.Unreachable, unreachables()))
	faults.Add(cli.Within(LanesFlag, s.Lanes, 0, MaxLanes))
	faults.If(!(s.UplinkMbit == 0 || s.UplinkMbit >= leastUplink && s.UplinkMbit <= mostUplink), uplinkFlag, "%v: want %v to %v Mbit/s, or 0 for no limit", s.UplinkMbit, leastUplink, float64(mostUplink))
	if err := (topology.Place{Site: s.Site}).Validate(); err != nil {
		faults.Add(cli.Faultf(siteFlag, "%v", err))
	}
	faults.If(len(s.Relay) > p2pnet.MaxRelays, relayFlag, "given %d times: at most %d are used", len(s.Relay), p2pnet.MaxRelays)
	for _, address := range s.Relay {
		faults.If(!isMultiaddr(address) || !strings.Contains(address, "/p2p/"), relayFlag, "%q: want a multiaddr with the relay's id, as it logs when it starts with -v: /ip4/192.0.2.7/tcp/4001/p2p/%s...", address, PeerIDPrefix)
	}
	for _, address := range s.Listen {
		faults.If(!isHostPort(address) && !isMultiaddr(address), "listen", "%q: want host:port, as in %s, or a multiaddr, as in /ip4/0.0.0.0/tcp/4001", address, defaultListen)
	}
	for _, address := range s.Join {
		faults.If(!isHostPort(address) && !isMultiaddr(address) || !dialled(address), "join", "%q: want host:port, as in 192.0.2.7:4001, or a multiaddr, as in /ip4/192.0.2.7/tcp/4001/p2p/%s...", address, PeerIDPrefix)
	}
	return faults
}

// Carrier is the way that news of members is sent, by a flag that Validate has checked.
func (s Network) Carrier() swim.Carrier {
	return map[string]swim.Carrier{carrierStreams: swim.Streams, carrierDatagrams: swim.Datagrams}[s.Membership]
}

// GossipKeys are the keys that encrypt news of members, by a flag that Validate has checked.
func (s Network) GossipKeys() [][]byte {
	keys, _ := s.gossipKeys()
	return keys
}

// Reach tells whether others can dial this peer.
func (s Network) Reach() peer.Reach {
	return map[string]peer.Reach{UnreachableYes: peer.Unreachable, unreachableNo: peer.Reachable}[s.Unreachable]
}

// Relays names the relays through which others reach this peer, and tells whether it is a relay itself.
func (s Network) Relays() p2pnet.Relay {
	return p2pnet.Relay{Via: s.Relay, Serve: s.RelayService, Punch: s.HolePunch}
}

// Uplink bounds what this peer sends, nil if nothing does.
func (s Network) Uplink() *p2pnet.UplinkShare {
	uplink, err := p2pnet.NewUplink(s.UplinkMbit * 1e6 / 8)
	if err != nil { // 0: no limit
		return nil
	}
	return uplink.Share()
}

// Bounds of --uplink: with less, hellos and news of members would come too late.
const (
	leastUplink = 0.1
	mostUplink  = 1e6
)

// gossipKeys reads the file of --gossip-key.
func (s Network) gossipKeys() ([][]byte, error) {
	if s.GossipKey == "" {
		return nil, nil
	}
	text, err := files.Read(s.GossipKey, maxGossipKeyFile)
	if err != nil {
		return nil, cli.Faultf(gossipKeyFlag, "cannot be read: %v: make the file with openssl rand -hex 32, and copy it to every machine", err)
	}
	var keys [][]byte
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := hex.DecodeString(line)
		if err != nil || len(key) != gossipKeySize {
			return nil, cli.Faultf(gossipKeyFlag, "%s: line %d is no key: want 64 hexadecimal digits, as openssl rand -hex 32 makes them", s.GossipKey, i+1)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, cli.Faultf(gossipKeyFlag, "%s holds no key: want 64 hexadecimal digits, as openssl rand -hex 32 makes them", s.GossipKey)
	}
	return keys, nil
}

// Keyed tells whether the run has a key.
func (s Network) Keyed() bool { return s.RunKey != "" || s.Secret != nil }

// Admission says which peers may take part.
func (s Network) Admission(log *zap.Logger) (peer.Admission, error) {
	a := peer.Admission{Allow: s.Allow, RunKey: s.Secret}
	if s.RunKey == "" {
		return a, nil
	}
	key, err := keys.ReadRun(s.RunKey, log)
	a.RunKey = key
	return a, err
}

// identity is the key of a peer: that of --key, or a new one.
func (s Network) identity(log *zap.Logger) (ed25519.PrivateKey, error) {
	if s.Key == "" && s.Identity != nil {
		return s.Identity, nil
	}
	if s.Key == "" {
		_, key, err := ed25519.GenerateKey(nil)
		return key, err
	}
	return keys.Read(s.Key, log)
}

func carriers() []string { return []string{CarrierAuto, carrierStreams, carrierDatagrams} }

func unreachables() []string { return []string{UnreachableAuto, UnreachableYes, unreachableNo} }

const (
	membershipFlag = "membership"
	gossipKeyFlag  = "gossip-key"
	relayFlag      = "relay"
	uplinkFlag     = "uplink"
	siteFlag       = "site"
	LanesFlag      = "lanes"

	unreachableFlag = "unreachable"
	UnreachableAuto = "auto"
	UnreachableYes  = "yes"
	unreachableNo   = "no"

	// MaxLanes is the most connections that package peer uses for one exchange.
	MaxLanes = transport.MaxLane + 1

	CarrierAuto      = "auto"
	carrierStreams   = "streams"
	carrierDatagrams = "datagrams"

	// gossipKeySize is that of AES-256.
	gossipKeySize = 32
	// maxGossipKeyFile bounds the file of keys, in bytes.
	maxGossipKeyFile = 4 << 10
)

// remedies names the flags to change after an error of the library, which knows no flags.
var remedies = []struct {
	cause  error
	remedy string
}{
	{transport.ErrLayout, "give --model and --dataset as they are given there; if they are, install the same build on both machines (gossipnode version): builds before 23 November 2026 lay models out otherwise, and their checkpoints are read by this one"},
	{transport.ErrUnknownRun, "give --run as it is given there; if it is, the peer there is only starting, or leaving"},
	{transport.ErrNotAdmitted, "give --run-key as it is given there, and have this peer's id added to the list there, and the one there to that of --allow here"},
	{transport.ErrUnknownProtocol, "install the same release on both machines"},
	{transport.ErrDuplicate, "give one of the two a key and a checkpoint folder of its own, with --key and --checkpoint: gossipnode keygen makes a key"},
	{p2pnet.ErrAddress, "correct --join"},
	{transport.ErrUnreachable, "check that a peer runs there, that the port is that of its --listen, not of --metrics or --dashboard, and open in every firewall between, and that the address is right"},
	{checkpoint.ErrInUse, "wait until that has ended, or end it, or give this peer a folder of its own with --checkpoint"},
	{checkpoint.ErrUnusable, "move them away, or give another folder with --checkpoint; to begin with the values of one of them, give it with --init"},
}

// Remedied adds the remedy to an error, if there is one.
func Remedied(err error) error {
	if remedy := Remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// Unusable are the errors at the start of a peer that remain when it is started again without
// a change.
var Unusable = []error{peer.ErrConfig, p2pnet.ErrAddress, syscall.EADDRNOTAVAIL, syscall.EACCES, syscall.EPERM}

// Remedy says which flags to change after an error of the library; it is empty if no flag helps.
func Remedy(err error) string {
	if errors.As(err, new(*p2pnet.WrongIdentityError)) {
		return "" // the error itself says what to correct
	}
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			return r.remedy
		}
	}
	return ""
}
