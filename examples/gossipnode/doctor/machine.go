package doctor

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// oldestYear is before any release of this program: a clock with an earlier year has not been set.
const oldestYear = 2025

// checkKey reads the identity; the key is nil if it cannot be used.
func checkKey(s settings.Settings) (ed25519.PrivateKey, []diagnosis) {
	const what = "key"
	path := s.IdentityPath()
	info, err := os.Stat(path)
	absent := errors.Is(err, fs.ErrNotExist)
	if absent && s.Key != "" {
		return nil, []diagnosis{healthy(what, "%s is not there", s.Key).fail("make it with gossipnode keygen --out " + s.Key)}
	}
	key, readErr := s.Lasting(zap.NewNop())
	switch {
	case readErr != nil && path == "":
		return nil, []diagnosis{healthy(what, "%v", readErr).fail("report it: this machine has no source of randomness")}
	case readErr != nil:
		return nil, []diagnosis{healthy(what, "%v", readErr).fail("give the file that gossipnode keygen has made")}
	case path == "":
		return key, []diagnosis{healthy(what, "none given: a new identity each time")}
	case absent:
		return key, []diagnosis{healthy(what, "none yet: run makes an identity, and keeps it in %s", path)}
	case err != nil:
		return nil, []diagnosis{healthy(what, "%v", err).fail("let this user read " + path)}
	}
	if keys.Loose(info) {
		return key, []diagnosis{healthy(what, "%s has mode %04o: others on this machine may take the identity", path, info.Mode().Perm()).
			warn("chmod 600 " + path)}
	}
	return key, []diagnosis{healthy(what, "%s is sound and its owner's only", path)}
}

// checkPorts listens as command run would, with a file of known identities. The returned transport can at least dial;
// it is nil if that fails too.
func checkPorts(s settings.Settings, key ed25519.PrivateKey, known string) (tr *p2pnet.Transport, found []diagnosis) {
	const what = "ports"
	tr, together := p2pnet.New(p2pnet.Config{Identity: key, Listen: s.Listen, Known: known})
	blamed := together == nil
	for _, address := range s.Listen {
		if together != nil { // find out which address failed
			one, fault := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{address}})
			if fault != nil {
				blamed = true
				found = append(found, healthy(what, "cannot listen on %s: %v", address, lastCause(fault)).
					fail("stop what uses the port, or give another address or port with --listen"))
				continue
			}
			_ = one.Close()
		}
		if strings.HasSuffix(address, ":0") || strings.HasSuffix(address, "/tcp/0") {
			found = append(found, healthy(what, "listens on %s over TCP, at a port that changes each time: nobody can be told it beforehand", address))
			continue
		}
		found = append(found, healthy(what, "listens on %s over TCP, which is all that is used", address))
	}
	if together == nil {
		return tr, found
	}
	if !blamed {
		found = append(found, healthy(what, "cannot listen on all of them at once: %v", lastCause(together)).fail("give each port once with --listen"))
	}
	tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{}, Known: known})
	if err != nil {
		return nil, append(found, healthy(what, "not even dialling works: %v", err).fail("report it with this line"))
	}
	return tr, found
}

// lastCause is the innermost of wrapped errors: the system's message.
func lastCause(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// checkAddresses reports who could reach the announced addresses.
func checkAddresses(s settings.Settings, announced []string) diagnosis {
	const what = "addresses"
	widest, names := 0, make([]string, len(announced))
	for i, address := range announced {
		kind, reach := reachOf(address)
		widest = max(widest, reach)
		names[i] = fmt.Sprintf("%s (%s)", address, kind)
	}
	d := healthy(what, "would be announced: %s", strings.Join(names, ", "))
	switch {
	case widest == reachHere && !joinsWithin(s, reachHere):
		return d.warn("these lead nowhere from other machines: listen on 0.0.0.0, or on an address of this machine")
	case widest == reachNetwork && !joinsWithin(s, reachNetwork) && s.Unreachable != settings.UnreachableYes && len(s.Relay) == 0:
		return d.warn("peers outside of this network cannot dial this one: forward the port and listen on it, be reached through a --relay, or give --unreachable")
	}
	return d
}

// The places from which an address can be dialled.
const (
	reachHere = iota + 1
	reachNetwork
	reachWorld
)

// reachOf tells from where a multiaddr or host:port can be dialled. It assumes that a name can be dialled from
// everywhere.
func reachOf(address string) (kind string, reach int) {
	// Addresses behind a NAT that a provider's customers share (RFC 6598).
	sharedNAT := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10)
	host := hostOf(address)
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "localhost":
		return "this machine only", reachHere
	case err != nil:
		return "by name", reachWorld
	case ip.IsLoopback():
		return "this machine only", reachHere
	case ip.IsPrivate() || ip.IsLinkLocalUnicast() || sharedNAT.Contains(ip.Unmap()):
		return "this network only", reachNetwork
	}
	return "public", reachWorld
}

// hostOf is the host of a validated address.
func hostOf(address string) string {
	if parts := strings.Split(address, "/"); len(parts) > 2 {
		return parts[2]
	}
	colon := strings.LastIndexByte(address, ':')
	return strings.Trim(address[:max(colon, 0)], "[]")
}

// joinsWithin tells whether there are addresses to join and all of them are at most that far.
func joinsWithin(s settings.Settings, most int) bool {
	for _, address := range s.Join {
		if _, reach := reachOf(address); reach > most {
			return false
		}
	}
	return len(s.Join) > 0
}

// checkClock tells whether the clock has been set. Runs and connections do not depend on it: peers count steps and
// incarnations, and their certificates are valid at any time.
func checkClock(now time.Time) diagnosis {
	d := healthy("clock", "%s; not compared with others, who do not tell theirs: neither a connection nor a run needs clocks that agree", now.UTC().Format(time.RFC3339))
	if now.Year() < oldestYear {
		return d.warn("set it: logs and checkpoints would bear that date, and data fetch could not check whom it downloads from")
	}
	return d
}

// copyKnown copies the file of known identities, so that questions do not change it, and returns a function that
// removes the copy.
func copyKnown(s settings.Settings) (path string, remove func(), err error) {
	file, err := os.CreateTemp("", "gossipnode-doctor-*")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.Remove(file.Name()) }
	text, err := os.ReadFile(s.KnownPeers())
	if err == nil {
		_, err = file.Write(text)
	} else if s.KnownPeers() == "" || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, file.Close()); err != nil {
		remove()
		return "", nil, err
	}
	return file.Name(), remove, nil
}
