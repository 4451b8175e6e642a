package main

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// maxPeers bounds --peers, --min-peers and the parts of --part.
const maxPeers = 1000

// maxMemory bounds --memory, in MiB.
const maxMemory = 1 << 20

// validate reports all faults at once, as a fault of usage that names where each
// setting comes from.
func (s settings) validate(from cli.Origins) error {
	faults := slices.Concat(s.networkSettings.faults(), s.dataSettings.faults(), s.trainSettings.faults(), s.outputSettings.faults(), s.watchSettings.faults(), s.finalFaults())
	return from.Usage(faults...)
}

func (s networkSettings) faults() []error {
	var faults []error
	if len(s.Run) == 0 || len(s.Run) > seam.MaxRunName {
		faults = append(faults, cli.Faultf("run", "has %d bytes: want 1 to %d", len(s.Run), seam.MaxRunName))
	}
	if s.MinPeers < 1 || s.MinPeers > maxPeers {
		faults = append(faults, cli.Faultf("min-peers", "%d: want 1 to %d", s.MinPeers, maxPeers))
	}
	if s.MinPeersWait < 0 {
		faults = append(faults, cli.Faultf("min-peers-wait", "%s: want a time that is not negative", s.MinPeersWait))
	}
	if s.Operator != "" && !strings.HasPrefix(s.Operator, peerIDPrefix) {
		faults = append(faults, cli.Faultf("operator", "%q: want a peer id, as keygen prints it: %s...", s.Operator, peerIDPrefix))
	}
	if err := cli.OneOf(membershipFlag, s.Membership, carriers()); err != nil {
		faults = append(faults, err)
	}
	if _, err := s.gossipKeys(); err != nil {
		faults = append(faults, err)
	}
	if err := cli.OneOf(unreachableFlag, s.Unreachable, unreachables()); err != nil {
		faults = append(faults, err)
	}
	if err := cli.Within(lanesFlag, s.Lanes, 1, maxLanes); err != nil {
		faults = append(faults, err)
	}
	if len(s.Relay) > p2pnet.MaxRelays {
		faults = append(faults, cli.Faultf(relayFlag, "given %d times: at most %d are used", len(s.Relay), p2pnet.MaxRelays))
	}
	for _, address := range s.Relay {
		if !isMultiaddr(address) || !strings.Contains(address, "/p2p/") {
			faults = append(faults, cli.Faultf(relayFlag, "%q: want a multiaddr with the relay's id, as it prints when it starts: /ip4/192.0.2.7/tcp/4001/p2p/%s...", address, peerIDPrefix))
		}
	}
	for _, address := range s.Listen {
		if !isHostPort(address) && !isMultiaddr(address) {
			faults = append(faults, cli.Faultf("listen", "%q: want host:port, as in %s, or a multiaddr, as in /ip4/0.0.0.0/tcp/4001", address, defaultListen))
		}
	}
	for _, address := range s.Join {
		if !isHostPort(address) && !isMultiaddr(address) || !dialled(address) {
			faults = append(faults, cli.Faultf("join", "%q: want host:port, as in 192.0.2.7:4001, or a multiaddr, as in /ip4/192.0.2.7/tcp/4001/p2p/%s...", address, peerIDPrefix))
		}
	}
	return faults
}

func (s dataSettings) faults() []error {
	faults := []error{
		cli.OneOf("dataset", s.Dataset, dataset.Datasets()),
		cli.OneOf("model", s.Model, nets.Names()),
	}
	if s.Data == "" && s.Dataset != dataset.Datasets()[0] && slices.Contains(dataset.Datasets(), s.Dataset) {
		faults = append(faults, cli.Faultf("dataset", "%s needs --data, the folder of its files", s.Dataset))
	}
	shard, err := dataset.ParseShard(s.Shard)
	if err != nil {
		faults = append(faults, cli.Faultf("shard", "%q: want iid, files, or dirichlet=ALPHA with ALPHA from %v to %v", s.Shard, dataset.MinAlpha, dataset.MaxAlpha))
	}
	if _, err := dataset.ParseAugment(s.Augment); err != nil && s.Augment != augmentAuto {
		faults = append(faults, cli.Faultf("augment", "%q: want auto, none, flip, crop or flip+crop", s.Augment))
	}
	if _, err := dataset.ParseNorm(s.Normalize); err != nil && s.Normalize != "" {
		faults = append(faults, cli.Faultf("normalize", "%q: want MEAN/SCALE, or one of each for every channel, as in 0.5,0.5,0.4/0.2,0.2,0.3", s.Normalize))
	}
	faults = append(faults, cli.Within("memory", s.Memory, 1, maxMemory))
	if _, _, err := parsePart(s.Part); err != nil {
		faults = append(faults, err)
	}
	if s.Part == "" && shard != (dataset.Shard{}) {
		faults = append(faults, cli.Faultf("shard", "%s cuts the data into parts: say with --part I/N which is this peer's", s.Shard))
	}
	return present(faults)
}

func (s trainSettings) faults() []error {
	faults := []error{
		cli.OneOf("optimizer", s.Optimizer, optimizers()),
		cli.OneOf("schedule", s.Schedule, schedules()),
		cli.OneOf("codec", s.Codec, append(quant.Names(), quant.Auto)),
	}
	faults = append(faults, s.strategySettings.faults()...)
	faults = append(faults, s.combinations()...)
	if _, err := s.pace(); err != nil {
		faults = append(faults, err)
	}
	if _, err := s.policy(); err != nil {
		faults = append(faults, err)
	}
	if n, err := strconv.Atoi(s.Quantized); err != nil || n < 0 || n > 100 {
		faults = append(faults, cli.Faultf("quantized", "%q: want 0 to 100 percent", s.Quantized))
	}
	if !(s.Epochs >= 0) || math.IsInf(s.Epochs, 0) {
		faults = append(faults, cli.Faultf("epochs", "%v: want a positive number", s.Epochs))
	}
	if s.Steps > 0 && s.Epochs != 0 {
		faults = append(faults, errors.New("--steps and --epochs both say how much work there is: give one of them"))
	}
	if s.Batch < 1 {
		faults = append(faults, cli.Faultf("batch", "%d: want at least 1", s.Batch))
	}
	if !(s.LR >= 0) || math.IsInf(s.LR, 0) {
		faults = append(faults, cli.Faultf("lr", "%v: want a positive number", s.LR))
	}
	if !(s.Warmup >= 0 && s.Warmup <= 1) {
		faults = append(faults, cli.Faultf("warmup", "%v: want a share of the work, 0 to 1", s.Warmup))
	}
	return present(faults)
}

func (s outputSettings) faults() []error {
	faults := append(s.checkpointSettings.faults(), cli.OneOf("log-level", s.LogLevel, logLevels()))
	if s.Metrics != "" && !isHostPort(s.Metrics) {
		faults = append(faults, cli.Faultf("metrics", "%q: want host:port, as in 127.0.0.1:9090", s.Metrics))
	}
	if s.Pprof && s.Metrics == "" {
		faults = append(faults, cli.Faultf("pprof", "needs --metrics, the address that profiles are served on"))
	}
	return present(faults)
}

// present drops what is no fault.
func present(faults []error) []error {
	return slices.DeleteFunc(faults, func(err error) bool { return err == nil })
}

// parsePart reads I/N. Without a part, parts is 0.
func parsePart(text string) (part, parts int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	i, n, ok := strings.Cut(text, "/")
	if ok {
		if part, err = strconv.Atoi(i); err == nil {
			parts, err = strconv.Atoi(n)
		}
	}
	if !ok || err != nil || parts < 1 || parts > maxPeers || part < 0 || part >= parts {
		return 0, 0, cli.Faultf("part", "%q: want I/N, as in 0/4, with N from 1 to %d and I from 0 to N-1", text, maxPeers)
	}
	return part, parts, nil
}
