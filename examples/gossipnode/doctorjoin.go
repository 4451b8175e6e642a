package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// joinPatience bounds the inquiry at one address.
	joinPatience = 10 * time.Second
	// usualRound is the round trip of a connection between continents, for the bound
	// that is told where nobody is there to measure against.
	usualRound = 100 * time.Millisecond
	// slowLine is the bound, in bytes a second, below which it is worth a remedy.
	slowLine = 100e6 / 8
)

// checkJoin asks every address whether this peer would be let in.
func (s settings) checkJoin(ctx context.Context, transport seam.Transport) (found []diagnosis) {
	admission, found := s.checkAdmission()
	if len(s.Join) == 0 {
		return append(found, healthy("join", "no address given: this peer would begin a run of its own"), s.checkWindow(usualRound, "", readSetting))
	}
	layout, known := s.layout()
	for _, address := range s.Join {
		within, cancel := context.WithTimeout(ctx, joinPatience)
		answer, err := admission.Inquire(within, transport, address, s.Run, layout)
		cancel()
		found = append(found, s.judge(address, answer, err, known)...)
	}
	return found
}

// judge tells what the answer of one address means. Known says whether the layout
// that was asked with is that of run.
func (s settings) judge(address string, answer peer.Inquiry, err error, known bool) []diagnosis {
	if answer.Peer == "" || answer.RoundTrip == 0 {
		return []diagnosis{s.unanswered(address, err)}
	}
	reached := healthy("join", "%s at %s answers, round trip %s", answer.Peer, address, answer.RoundTrip.Round(10*time.Microsecond))
	found := []diagnosis{reached}
	run := healthy("run", "%s takes part in %q", address, s.Run)
	layout := healthy("layout", "the model there is %s, too", s.Model)
	var refused *peer.RefusedError
	errors.As(err, &refused)
	switch {
	case err == nil:
		found = append(found, run, layout)
	case errors.Is(err, peer.ErrLayout) && !known:
		found = append(found, run, healthy("layout", "not compared: that of %s follows from the folder, which only run reads", s.Dataset))
	case errors.Is(err, peer.ErrLayout):
		layout.Finding = fmt.Sprintf("%s has another model than %s for %s: %s", address, s.Model, s.Dataset, refused.Detail)
		found = append(found, run, layout.fail("give --model and --dataset as they are given there"))
	case errors.Is(err, peer.ErrRun):
		run.Finding = fmt.Sprintf("the process at %s takes no part in %q", address, s.Run)
		if refused.Detail != "" {
			run.Finding += ": " + refused.Detail
		}
		found = append(found, run.fail("give --run as it is given there; if it is, the peer there is only starting, or leaving"))
	case errors.Is(err, peer.ErrNotAdmitted):
		run.Finding = fmt.Sprintf("the peer at %s does not let this one take part: %v", address, err)
		found = append(found, run.fail("give --run-key as it is given there, and have this peer's id added to the list there"))
	case errors.Is(err, peer.ErrVersion):
		run.Finding = fmt.Sprintf("%s speaks another version", address)
		found = append(found, run.fail("install the same release on both machines"))
	default:
		run.Finding = fmt.Sprintf("%s refuses: %v", address, err)
		found = append(found, run.fail("read the log of the peer there"))
	}
	return append(found, s.checkWindow(answer.RoundTrip, address, readSetting))
}

// unanswered tells why an address gave no answer.
func (s settings) unanswered(address string, err error) diagnosis {
	var changed *p2pnet.IdentityChangedError
	var wrong *p2pnet.WrongIdentityError
	d := healthy("join", "%s: %v", address, err)
	switch {
	case errors.As(err, &changed):
		changed.File = s.knownPeers()
		d.Finding = changed.Error()
		return d.fail("find out which, before you do as it says")
	case errors.As(err, &wrong):
		d.Finding = fmt.Sprintf("%s: %v", address, wrong)
		return d.fail("ask who runs the peer for its address")
	case errors.Is(err, p2pnet.ErrSelf):
		return healthy("join", "%s is this peer itself: run passes over it", address)
	case errors.Is(err, p2pnet.ErrAddress):
		return d.fail("correct --join")
	case errors.Is(err, peer.ErrNotAdmitted):
		return d.fail("have this peer's id added to the list there, and the one there to the list here")
	case errors.Is(err, peer.ErrVersion):
		return d.fail("install the same release on both machines")
	}
	return d.fail("check that a peer runs there and listens on that port, that the port is open in every firewall between, and that the address is right")
}

// layout is the hash of what --model makes of the pictures of --dataset, and whether
// that can be told without reading them.
func (s settings) layout() (hash [32]byte, known bool) {
	shape := dataset.Shape{Height: 28, Width: 28, Channels: 1}
	switch s.Dataset {
	case "glyphs", "mnist", "fashion-mnist":
	case "cifar10":
		shape = dataset.Shape{Height: 32, Width: 32, Channels: 3}
	default:
		return hash, false
	}
	const classes = 10
	model, err := nets.ByName(s.Model, shape, classes)
	if err != nil {
		return hash, false
	}
	return model.Layout().Hash(), true
}

// checkWindow tells what the connections of an exchange can carry at a round trip: no
// more than is in flight at once, which the window of a stream bounds, and the system's
// buffers for a connection.
func (s settings) checkWindow(round time.Duration, address string, read func(string) string) diagnosis {
	least, by := int64(p2pnet.MaxWindow), "the window of a stream"
	for _, setting := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
		fields := strings.Fields(read(setting)) // least, default and most
		if len(fields) != 3 {
			continue
		}
		// The system keeps about half of a buffer for its own accounts.
		if most, err := strconv.ParseInt(fields[2], 10, 64); err == nil && most/2 < least {
			least, by = most/2, setting
		}
	}
	rate, on := float64(least)/round.Seconds(), "one connection"
	if s.Lanes > 1 {
		rate, on = rate*float64(s.Lanes), fmt.Sprintf("%d connections", s.Lanes)
	}
	place := "to " + address
	if address == "" {
		place = fmt.Sprintf("at a round trip of %s, say", round)
	}
	d := healthy("window", "%.1f MiB in flight at most (%s): up to %s on %s %s", float64(least)/(1<<20), by, bitRate(rate), on, place)
	switch {
	case rate >= slowLine:
	case by != "the window of a stream":
		return d.warn(fmt.Sprintf("raise the last number of %s to %d with sysctl", by, 2*p2pnet.MaxWindow))
	default:
		return d.warn(fmt.Sprintf("give --%s 2 or more, up to %d, on both machines; or a --codec of fewer bits", lanesFlag, maxLanes))
	}
	return d
}

// bitRate writes bytes a second as bits a second.
func bitRate(bytes float64) string {
	bits := 8 * bytes
	switch {
	case bits >= 1e10:
		return "10 Gbit/s and more"
	case bits >= 1e9:
		return fmt.Sprintf("%.1f Gbit/s", bits/1e9)
	}
	return fmt.Sprintf("%.0f Mbit/s", bits/1e6)
}

// readSetting is a setting of the system, empty where it has none of that name.
func readSetting(name string) string {
	text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
