package simulate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// worldSettings are the flags of a simulated world.
type worldSettings struct {
	Peers    int
	StepTime time.Duration
	Jitter   float64
	Slow     []string
	Link     string
	Loss     float64
	Paging   string
	SlowLink []string
	Sites    int
	Across   string
	Blind    bool
	Crash    []string
	Leave    []string
	Arrive   []string
	Attack   []string
	Replay   string
}

const (
	defaultLink     = "1000,0.2"
	bytesPerMegabit = 1e6 / 8
	maxMillis       = 1e6
	// leastMegabits, a bit a second, carries models within the time that a simulation can count, some 290 years.
	leastMegabits = 1e-6
	// BlindFlag has peers say nothing of their sites.
	BlindFlag = "blind"
)

func (w *worldSettings) register(flags *pflag.FlagSet) {
	flags.IntVar(&w.Peers, "peers", 16, fmt.Sprintf("number of peers, 1 to %d", settings.MaxPeers))
	flags.DurationVar(&w.StepTime, "step-time", 10*time.Millisecond, "virtual time of a gradient step, whatever the model, the batch and this machine")
	flags.Float64Var(&w.Jitter, "jitter", 0.1, "share of it by which steps differ at most, from 0 to below 1")
	flags.StringArrayVar(&w.Slow, "slow", nil, "`P=FACTOR`: the steps of peer P, from 0, take so many times longer; repeatable")
	flags.StringVar(&w.Link, "link", defaultLink, "`MBPS,MS`: megabits a second each way of a peer's connection, 0 for no limit, and milliseconds from one peer to another")
	flags.Float64Var(&w.Loss, "loss", 0, "probability that a packet must be sent again, from 0 to below 1")
	flags.StringVar(&w.Paging, pagingFlag, "", "`MB,MBPS`: memory of a peer for its part of the model, and the rate at which a step pages what is beyond, out and in (default: no bound)")
	flags.StringArrayVar(&w.SlowLink, "slow-link", nil, "`P=FACTOR`: the connection of peer P carries so many times less; repeatable")
	flags.IntVar(&w.Sites, "sites", 1, "`K`: peers are at so many sites, peer P at site P modulo K, and tell it as run --site does")
	flags.StringVar(&w.Across, "across", "", "`MBPS,MS`: what all peers of a site together send to other sites, and receive, and milliseconds to there (default: as --link, with no bound for a site)")
	flags.BoolVar(&w.Blind, BlindFlag, false, "peers do not tell at which site they are")
	flags.StringArrayVar(&w.Crash, "crash", nil, "`P@TIME`: peer P is gone from that virtual time on, and nobody is told; repeatable")
	flags.StringArrayVar(&w.Leave, "leave", nil, "`P@TIME`: peer P leaves; repeatable")
	flags.StringArrayVar(&w.Arrive, "arrive", nil, "`P@TIME`: peer P comes, for the first time or back, and copies a neighbour's model; repeatable")
	flags.StringArrayVar(&w.Attack, "attack", nil, "`P=LIE,STRENGTH`: peer P lies, with noise, sign-flip or push; repeatable")
	flags.StringVar(&w.Replay, "replay", "", "`file` written with --record: compute times, links, coming and going are as they were there, whatever the other flags say of them")
}

// world returns the world of the flags, or all their errors.
func (w worldSettings) world() (peertest.World, error) {
	var faults cli.Faults
	world := peertest.World{Compute: peertest.Compute{Step: w.StepTime, Jitter: w.Jitter}}
	if w.Jitter == 0 {
		world.Compute.Jitter = -1 // none
	}
	faults.Add(cli.Within("peers", w.Peers, 1, settings.MaxPeers))
	faults.If(w.StepTime <= 0, "step-time", "%s: want a time above 0, as in 10ms", w.StepTime)
	faults.If(!(w.Jitter >= 0 && w.Jitter < 1), "jitter", "%v: want a share from 0 to below 1", w.Jitter)
	faults.If(!(w.Loss >= 0 && w.Loss < 1), "loss", "%v: want a probability from 0 to below 1", w.Loss)
	var err error
	world.Compute.Slow, err = w.factors("slow", w.Slow)
	faults.Add(err)
	world.Links.Slow, err = w.factors("slow-link", w.SlowLink)
	faults.Add(err)
	_, err = parsePaging(w.Paging)
	faults.Add(err)
	world.Links.Port, world.Links.Link.Delay, err = parseLink("link", w.Link)
	faults.Add(err)
	world.Links.Link.Loss = w.Loss
	faults.Add(w.parts(&world.Links))
	if len(w.SlowLink) > 0 && world.Links.Port == 0 {
		faults.Add(cli.Faultf("slow-link", "%s: --link %s has no limit of which that could be a share", w.SlowLink[0], w.Link))
	}
	for i, factor := range world.Links.Slow {
		faults.If(world.Links.Port > 0 && world.Links.Port/factor < leastMegabits*bytesPerMegabit, "slow-link", "%d=%g: of --link %s that leaves less than %g Mbit/s", i, factor, w.Link, leastMegabits)
	}
	for _, kind := range []struct {
		flag   string
		values []string
		kind   string
	}{{"crash", w.Crash, peertest.Crash}, {"leave", w.Leave, peertest.Leave}, {"arrive", w.Arrive, peertest.Arrive}} {
		for _, text := range kind.values {
			change, err := w.change(kind.flag, text, kind.kind)
			faults.Add(err)
			world.Changes = append(world.Changes, change)
		}
	}
	world.Lies = make(map[int]peertest.Lie)
	for _, text := range w.Attack {
		liar, lie, err := w.attack(text)
		faults.Add(err)
		world.Lies[liar] = lie
	}
	return world, errors.Join(faults...)
}

// peer reads the number of a peer.
func (w worldSettings) peer(text string) (int, bool) {
	i, err := strconv.Atoi(text)
	return i, err == nil && i >= 0 && i < w.Peers
}

// factors reads P=FACTOR, at most once for each peer.
func (w worldSettings) factors(flag string, values []string) (map[int]float64, error) {
	factors := map[int]float64{}
	for _, text := range values {
		name, factor, _ := strings.Cut(text, "=")
		i, known := w.peer(name)
		f, err := strconv.ParseFloat(factor, 64)
		if !known || err != nil || !(f > 0 && f <= 1e6) {
			return nil, cli.Faultf(flag, "%q: want P=FACTOR with a peer from 0 to %d and a factor above 0, as in 3=100", text, w.Peers-1)
		}
		factors[i] = f
	}
	return factors, nil
}

// parts reads the sites into the links.
func (w worldSettings) parts(links *peertest.Links) (err error) {
	if err := cli.Within("sites", w.Sites, 1, settings.MaxPeers); err != nil {
		return err
	}
	if w.Sites == 1 {
		if w.Across != "" || w.Blind {
			return cli.Faultf("sites", "1: --across and --%s are for several sites: give --sites 2, or leave them out", BlindFlag)
		}
		return nil
	}
	for i := range w.Peers {
		links.Sites = append(links.Sites, i%w.Sites)
	}
	links.Blind, links.Across = w.Blind, links.Link
	if w.Across != "" {
		links.Across.Bandwidth, links.Across.Delay, err = parseLink("across", w.Across)
	}
	return err
}

// parseLink reads MBPS,MS.
func parseLink(flag, text string) (bytes float64, delay time.Duration, err error) {
	rate, far, _ := strings.Cut(text, ",")
	megabits, err := strconv.ParseFloat(rate, 64)
	millis, err2 := strconv.ParseFloat(far, 64)
	if err != nil || err2 != nil || !(megabits >= 0 && megabits <= 1e9) || !(millis >= 0 && millis <= maxMillis) {
		return 0, 0, cli.Faultf(flag, "%q: want MBPS,MS, as in 100,40 for 100 Mbit/s and 40 ms from one peer to another", text)
	}
	if megabits > 0 && megabits < leastMegabits {
		return 0, 0, cli.Faultf(flag, "%q: want at least %g Mbit/s, or 0 for no limit", text, leastMegabits)
	}
	return megabits * bytesPerMegabit, time.Duration(millis * float64(time.Millisecond)), nil
}

// change reads P@TIME.
func (w worldSettings) change(flag, text string, kind string) (peertest.Change, error) {
	name, at, _ := strings.Cut(text, "@")
	i, known := w.peer(name)
	when, err := time.ParseDuration(at)
	if !known || err != nil || when < 0 {
		return peertest.Change{}, cli.Faultf(flag, "%q: want P@TIME with a peer from 0 to %d, as in 3@20s", text, w.Peers-1)
	}
	return peertest.Change{At: when, Kind: kind, Peer: i}, nil
}

// attack reads P=LIE,STRENGTH.
func (w worldSettings) attack(text string) (liar int, lie peertest.Lie, err error) {
	name, rest, _ := strings.Cut(text, "=")
	kind, strength, _ := strings.Cut(rest, ",")
	liar, known := w.peer(name)
	s, err := strconv.ParseFloat(strength, 64)
	if err == nil {
		lie, err = peertest.LieOf(kind, s)
	}
	if !known || err != nil {
		return liar, nil, cli.Faultf("attack", "%q: want P=LIE,STRENGTH with a peer from 0 to %d and noise, sign-flip or push, as in 3=sign-flip,10", text, w.Peers-1)
	}
	return liar, lie, nil
}

// readReplay reads the recording of --replay into the world.
func (w *worldSettings) readReplay(world *peertest.World) error {
	if w.Replay == "" {
		return nil
	}
	file, err := os.Open(w.Replay)
	if err != nil {
		return fmt.Errorf("reading the recording: %w", err)
	}
	defer file.Close()
	recording, err := peertest.ReadRecording(file)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Replay, err)
	}
	w.Peers, world.Replay = recording.Peers, recording
	return nil
}
