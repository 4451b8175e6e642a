package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// joinTimeout bounds the inquiry at one address, joinAtOnce how many are asked at a time.
	joinTimeout = 10 * time.Second
	joinAtOnce  = 16
	// usualRound is the round trip between continents, for a bound if no member is there to measure with.
	usualRound = 100 * time.Millisecond
	// slowLine is the bound, in bytes a second, below which a remedy is suggested.
	slowLine = 100e6 / 8
)

// checkJoin asks every address whether it would admit this peer.
func checkJoin(ctx context.Context, s settings.Settings, from cli.Origins, tr transport.Transport) (found []diagnosis) {
	admission, found := checkAdmission(s)
	if len(s.Join) == 0 {
		return append(found, healthy("join", "no address given: this peer would begin a run of its own"), checkWindow(s, usualRound, "", readSetting))
	}
	differences := compare(ctx, tr, &s, from)
	layout, known := layout(s)
	answers, turns := make([][]diagnosis, len(s.Join)), make(chan struct{}, joinAtOnce)
	var asking sync.WaitGroup
	for i, address := range s.Join {
		turns <- struct{}{}
		asking.Go(func() {
			within, cancel := context.WithTimeout(ctx, joinTimeout)
			defer cancel()
			answer, err := admission.Inquire(within, tr, address, s.Run, layout)
			answers[i] = judge(s, address, answer, err, known)
			<-turns
		})
	}
	asking.Wait()
	return slices.Concat(found, slices.Concat(answers...), differences)
}

// compare asks the members to join for the description of the run, as command run does, and reports differing
// settings. Settings that the user has not given are taken over.
func compare(ctx context.Context, tr transport.Transport, s *settings.Settings, from cli.Origins) (found []diagnosis) {
	const what = "settings"
	_, differences, err := rundescription.Compare(ctx, tr, s, from, zap.NewNop())
	if err != nil {
		return []diagnosis{healthy(what, "%v", err).fail("ask who runs the peers there")}
	}
	for _, d := range differences {
		one := healthy(what, "%s", d)
		if one.difference = &d; d.Local {
			found = append(found, one.warn("leave it out to take over the run's; it is this peer's own to choose"))
		} else {
			found = append(found, one.fail("leave it out to take over the run's"))
		}
	}
	return found
}

// judge explains the answer of one address. known says whether the layout in the question is that of run.
func judge(s settings.Settings, address string, answer peer.Inquiry, err error, known bool) []diagnosis {
	if answer.Peer == "" || answer.RoundTrip == 0 {
		return []diagnosis{unanswered(s, address, err)}
	}
	found := []diagnosis{healthy("join", "%s at %s answers, round trip %s", answer.Peer, address, answer.RoundTrip.Round(10*time.Microsecond))}
	run := healthy("run", "%s takes part in %q", address, s.Run)
	layout := healthy("layout", "the model there is %s, too", s.Model)
	var refused *transport.RefusedError
	errors.As(err, &refused)
	switch {
	case err == nil && known:
		found = append(found, run, layout)
	case err == nil:
		found = append(found, run, healthy("layout", "not compared: that of %s follows from the folder, which only run reads", s.Dataset))
	case errors.Is(err, transport.ErrLayout):
		layout.Finding = fmt.Sprintf("%s has another model than %s for %s: %s", address, s.Model, s.Dataset, refused.Detail)
		found = append(found, run, layout.fail(settings.Remedy(err)))
	default:
		run.Finding = fmt.Sprintf("%s refuses: %v", address, err)
		switch {
		case errors.Is(err, transport.ErrUnknownRun):
			run.Finding = fmt.Sprintf("the process at %s takes no part in %q", address, s.Run)
			if refused.Detail != "" {
				run.Finding += ": " + refused.Detail
			}
		case errors.Is(err, transport.ErrNotAdmitted):
			run.Finding = fmt.Sprintf("the peer at %s does not let this one take part: %v", address, err)
		case errors.Is(err, transport.ErrUnknownProtocol):
			run.Finding = fmt.Sprintf("%s speaks another version", address)
		}
		found = append(found, run.fail(cmp.Or(settings.Remedy(err), "read the log of the peer there")))
	}
	return append(found, checkWindow(s, answer.RoundTrip, address, readSetting))
}

// unanswered says why an address did not answer.
func unanswered(s settings.Settings, address string, err error) diagnosis {
	var changed *p2pnet.IdentityChangedError
	var wrong *p2pnet.WrongIdentityError
	d := healthy("join", "%s: %v", address, err)
	switch {
	case errors.As(err, &changed):
		changed.File = s.KnownPeers()
		d.Finding = changed.Error()
		return d.fail("find out which, before you do as it says")
	case errors.As(err, &wrong):
		d.Finding = fmt.Sprintf("%s: %v", address, wrong)
		return d.fail("ask who runs the peer for its address")
	case errors.Is(err, transport.ErrDuplicate):
		d.Finding = fmt.Sprintf("%s: another process has this key, and of two the later one stops", address)
		return d.warn("unless that is this machine's own peer, " + settings.Remedy(err))
	case errors.Is(err, transport.ErrSelf):
		return healthy("join", "%s is this peer itself: run passes over it", address)
	}
	return d.fail(cmp.Or(settings.Remedy(err), "read the log of the process there"))
}

// layout returns the hash of the layout of --model for the pictures of --dataset, and whether it is known without
// reading them.
func layout(s settings.Settings) (hash [32]byte, known bool) {
	shape, classes := dataset.Shape{Height: 28, Width: 28, Channels: 1}, 10
	switch s.Dataset {
	case "glyphs", "mnist", "fashion-mnist":
	case "cifar10":
		shape = dataset.Shape{Height: 32, Width: 32, Channels: 3}
	case "cifar100":
		shape, classes = dataset.Shape{Height: 32, Width: 32, Channels: 3}, 100
	default:
		return hash, false
	}
	model, err := nets.Sized(s.Model, shape, classes, s.Sizes)
	if err != nil {
		return hash, false
	}
	return model.Layout().Hash(), true
}

// checkWindow reports how much the connections of an exchange can carry at a round trip: the bytes in flight are
// bounded by the window of a stream and by the system's buffers for a connection.
func checkWindow(s settings.Settings, round time.Duration, address string, read func(string) string) diagnosis {
	least, by := int64(p2pnet.MaxWindow), "the window of a stream"
	for _, setting := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
		fields := strings.Fields(read(setting)) // least, default and most
		if len(fields) != 3 {
			continue
		}
		// The system uses about half of a buffer for its own data.
		if most, err := strconv.ParseInt(fields[2], 10, 64); err == nil && most/2 < least {
			least, by = most/2, setting
		}
	}
	rate, on := float64(least)/round.Seconds(), "one connection"
	if lanes := cmp.Or(s.Lanes, peer.WideLanes); lanes > 1 {
		rate, on = rate*float64(lanes), fmt.Sprintf("%d connections", lanes)
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
		return d.warn(fmt.Sprintf("give --%s %d on both machines, or a --codec of fewer bits", settings.LanesFlag, settings.MaxLanes))
	}
	return d
}

// bitRate writes a rate in bytes a second as bits a second.
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

// readSetting reads a setting of the system; "" if it does not exist.
func readSetting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	return strings.TrimSpace(string(text))
}
