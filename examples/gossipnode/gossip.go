package main

import (
	"bytes"
	"encoding/hex"
	"os"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/peer/swim"
)

const (
	membershipFlag = "membership"
	gossipKeyFlag  = "gossip-key"
	relayFlag      = "relay"
	lanesFlag      = "lanes"

	unreachableFlag = "unreachable"
	unreachableAuto = "auto"
	unreachableYes  = "yes"
	unreachableNo   = "no"

	// maxLanes is the most connections that package peer uses for one exchange.
	maxLanes = seam.MaxLane + 1

	carrierAuto      = "auto"
	carrierStreams   = "streams"
	carrierDatagrams = "datagrams"

	// gossipKeySize is that of AES-256.
	gossipKeySize = 32
	// maxGossipKeyFile bounds the file of keys, in bytes.
	maxGossipKeyFile = 4 << 10
)

func carriers() []string { return []string{carrierAuto, carrierStreams, carrierDatagrams} }

// gossip is how members find each other; validate has seen to both flags.
func (s networkSettings) gossip() peer.Gossip {
	keys, _ := s.gossipKeys()
	carrier := map[string]swim.Carrier{carrierStreams: swim.Streams, carrierDatagrams: swim.Datagrams}[s.Membership]
	return peer.Gossip{Carrier: carrier, Keys: keys}
}

func unreachables() []string { return []string{unreachableAuto, unreachableYes, unreachableNo} }

// reach is how others reach this peer, and through whom.
func (s networkSettings) reach() peer.Reach {
	return peer.Reach{
		Unreachable: s.Unreachable == unreachableYes, Reachable: s.Unreachable == unreachableNo,
		Relay: p2pnet.Relay{Via: s.Relay, Serve: s.RelayService, Punch: s.HolePunch},
	}
}

// gossipKeys reads the file of --gossip-key.
func (s networkSettings) gossipKeys() ([][]byte, error) {
	if s.GossipKey == "" {
		return nil, nil
	}
	info, err := os.Stat(s.GossipKey)
	if err != nil {
		return nil, cli.Faultf(gossipKeyFlag, "cannot be read: %v: make the file with openssl rand -hex 32, and copy it to every machine", err)
	}
	if info.Size() > maxGossipKeyFile {
		return nil, cli.Faultf(gossipKeyFlag, "%s has %d bytes: want a key a line", s.GossipKey, info.Size())
	}
	text, err := os.ReadFile(s.GossipKey)
	if err != nil {
		return nil, cli.Faultf(gossipKeyFlag, "cannot be read: %v: let this user read it", err)
	}
	var keys [][]byte
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, err := hex.DecodeString(string(line))
		if err != nil || len(key) != gossipKeySize {
			return nil, cli.Faultf(gossipKeyFlag, "%s: line %d is no key: want 64 hexadecimal digits, as openssl rand -hex 32 makes them", s.GossipKey, number)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, cli.Faultf(gossipKeyFlag, "%s holds no key: want 64 hexadecimal digits, as openssl rand -hex 32 makes them", s.GossipKey)
	}
	return keys, nil
}
