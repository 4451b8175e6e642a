// Package describe makes of settings the description of a run, by which its members see
// that they train the same model by the same rules, and of the description of a run the
// settings of one that joins it.
package describe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// askPatience bounds the wait for all addresses to join together.
const askPatience = 5 * time.Second

// heldOut is the field of the data that models are evaluated on, which tells data sets of one
// name apart.
const heldOut = "held-out data"

// Of describes the run of these settings, and of these data once they are loaded.
func Of(s settings.Settings, data *dataset.Data) description.Description {
	var all []description.Field
	if data != nil {
		if norm := data.Measured(); norm != nil {
			s.Normalize = dataset.FormatNorm(norm)
		}
		if s.Dataset == dataset.Images {
			s.Size = fmt.Sprintf("%dx%d", data.Shape().Width, data.Shape().Height)
		}
		if !s.IsTable() { // rows are held out for oneself
			// Pictures of one's own may be.
			all = append(all, description.Field{Name: heldOut, Value: fmt.Sprintf("%x", data.HeldOut.Fingerprint()), Local: s.Dataset == dataset.Images})
		}
	}
	for _, f := range fields() {
		if value := f.value(s); !f.table || s.IsTable() && value != "" && len(value) <= description.MaxValue {
			all = append(all, description.Field{Name: f.name, Value: value, Local: f.local})
		}
	}
	return description.Of(s.Run, all...)
}

// Join asks the addresses to join what the run is. What nobody has set is set as it is
// there; what was set otherwise, and would harm models or work, is a fault of usage. Where
// no member answers, or none says what the run is, the settings stay as they are. What was
// taken over is returned, in the words of flags.
func Join(ctx context.Context, s *settings.Settings, from cli.Origins, log *zap.Logger) (taken []string, err error) {
	key, err := s.Lasting(log)
	if err != nil {
		return nil, cli.Config(err)
	}
	transport, err := p2pnet.New(p2pnet.Config{Key: key, Listen: []string{}, Known: s.KnownPeers(), Log: log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, transport.Close()) }()
	taken, differences, err := Compare(ctx, transport, s, from, log)
	if err != nil {
		return taken, err
	}
	harmful, _ := description.Split(differences)
	return taken, Contradiction(from, harmful)
}

// Compare is Join that asks by a transport, and returns the differences.
func Compare(ctx context.Context, transport seam.Transport, s *settings.Settings, from cli.Origins, log *zap.Logger) (taken []string, differences []description.Difference, err error) {
	found, err := ask(ctx, transport, *s, log)
	if err != nil || len(found.Description.Fields) == 0 {
		return nil, nil, err
	}
	s.Founder = string(found.Signer)
	if taken, err = adopt(s, from, found.Description); err != nil {
		return taken, nil, err
	}
	return taken, Of(*s, nil).Differences(found.Description), nil
}

// ask asks the addresses to join what the run is, until one says so. Members that learn from
// tables say so before they train, too, while they prepare their rows.
func ask(ctx context.Context, transport seam.Transport, s settings.Settings, log *zap.Logger) (found peer.Inquiry, err error) {
	admission, err := s.Admission(log)
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	for _, address := range s.Join {
		if found, err = admission.Inquire(ctx, transport, address, s.Run, [32]byte{}); errors.Is(err, seam.ErrUnknownRun) {
			found, err = admission.Inquire(ctx, transport, address, s.PreparingRun(), [32]byte{})
		}
		if len(found.Description.Fields) > 0 {
			break
		}
		log.Debug("an address to join does not tell what the run is", zap.String("address", address), zap.Error(err))
	}
	if founder := s.Founder; founder != "" && found.Signer != "" && string(found.Signer) != founder {
		return found, cli.Usagef("the token is one of %s, but the run there was begun by %s: ask who gave the token for a new one", founder, found.Signer)
	}
	return found, nil
}

// adopt sets what nobody has set as the run has it.
func adopt(s *settings.Settings, from cli.Origins, there description.Description) (taken []string, err error) {
	for _, f := range fields() {
		value, ok := there.Value(f.name)
		set := slices.ContainsFunc(f.flags, func(flag string) bool { return from.Source(flag) != cli.FromDefault })
		if f.value(*s) == settings.OfFlock { // what it is was to be found out
			set = false
		}
		if !ok || f.take == nil || set {
			continue
		}
		if value == f.value(*s) {
			continue
		}
		if err := f.take(s, value); err != nil {
			return taken, fmt.Errorf("taking over the run's %s, %q: %w", f.name, value, err)
		}
		taken = append(taken, f.name+" "+value)
	}
	return taken, nil
}

// Contradiction is the fault of usage of settings that differ from the run's; nil if none do.
func Contradiction(from cli.Origins, differences []description.Difference) error {
	var faults []error
	for _, d := range differences {
		i := slices.IndexFunc(fields(), func(f field) bool { return f.name == d.Field })
		if i < 0 {
			faults = append(faults, fmt.Errorf("%s: give the data that the others have, with --data", d))
			continue
		}
		flags := slices.DeleteFunc(slices.Clone(fields()[i].flags), func(flag string) bool { return from.Source(flag) == cli.FromDefault })
		for j, flag := range flags {
			flags[j] = from.Name(flag)
		}
		remedy := "join with another value"
		if len(flags) > 0 {
			remedy = "leave out " + strings.Join(flags, " and ") + " to take over the run's"
		}
		faults = append(faults, fmt.Errorf("%s: %s", d, remedy))
	}
	if len(faults) == 0 {
		return nil
	}
	return cli.Usage(fmt.Errorf("this run is another than that of --join:\n%w", errors.Join(faults...)))
}

// Refused makes a fault of usage of a member's word, on the first hello, that this peer is
// set up otherwise; nil of any other error.
func Refused(from cli.Origins, err error) error {
	mismatch, ok := errors.AsType[*description.MismatchError](err)
	if !ok {
		return nil
	}
	return Contradiction(from, mismatch.Differences)
}
