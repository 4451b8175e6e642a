package bridge

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/metrics"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// service makes peers for trainers.
type service struct {
	given *pflag.FlagSet // from the command line
	std   cli.Streams
}

// trainer is a connected trainer with what ends when it does.
type trainer struct {
	settings.Settings
	from cli.Origins
	log  *zap.Logger
	ends []func()
}

// serve serves one trainer until it ends.
func (s service) serve(ctx context.Context, control io.ReadWriteCloser, memory *os.File) error {
	var t *trainer
	defer func() {
		if t != nil {
			t.end()
		}
	}()
	var before settings.Settings // without those of hello
	flags := pflag.NewFlagSet("bridge", pflag.ContinueOnError)
	before.RegisterBridge(flags)
	flagsGiven(s.given, flags)
	return bridge.Serve(ctx, control, memory, bridge.Config{Log: before.NewLog(s.std.Err), Start: func(ctx context.Context, hello bridge.Hello) (*peer.Peer, error) {
		if t != nil {
			t.end() // the hello failed
		}
		var err error
		if t, err = s.settled(hello); err != nil {
			return nil, &bridge.Refusal{Code: bridge.CodeSettings, Detail: err.Error(), Remedy: "correct what it names: gossipnode bridge --help tells all settings"}
		}
		return t.start(ctx, hello)
	}})
}

// settled returns the settings of a hello; flags of the command line override them.
func (s service) settled(hello bridge.Hello) (*trainer, error) {
	t := &trainer{}
	cmd := &cobra.Command{Use: "bridge"}
	flags := cmd.Flags()
	t.RegisterBridge(flags)
	cli.TakeFile(flags)
	flagsGiven(s.given, flags)
	said := map[string]any{}
	for name, value := range hello.Settings {
		said[name] = value
	}
	if hello.Run != "" {
		said["run"] = hello.Run
	}
	for name, list := range map[string][]string{"join": hello.Join, "listen": hello.Listen} {
		if len(list) > 0 {
			said[name] = anyOf(list)
		}
	}
	var faults []error
	for name, value := range said {
		faults = append(faults, s.set(flags, name, value))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	var err error
	if t.from, err = t.Load(cmd); err != nil {
		return nil, err
	}
	if err := t.Validate(t.from); err != nil {
		return nil, err
	}
	t.log = t.NewLog(s.std.Err)
	t.ends = append(t.ends, p2pnet.BridgeLogs(t.log))
	return t, nil
}

// set sets a flag to a value of hello, unless the command line has set it.
func (s service) set(flags *pflag.FlagSet, name string, value any) error {
	f := flags.Lookup(name)
	switch {
	case f == nil || f.Hidden || name == cli.ConfigFlag || name == "help":
		err := fmt.Errorf("no such setting: %q", name)
		if alike, ok := cli.Nearest(name, names(flags)); ok {
			return fmt.Errorf("%w: did you mean %q?", err, alike)
		}
		return err
	case s.given.Changed(name):
		return nil
	}
	values, err := texts(value)
	if _, list := f.Value.(pflag.SliceValue); err == nil && len(values) != 1 && !list {
		err = errors.New("want one value, not a list")
	}
	for _, text := range values {
		if err == nil {
			err = flags.Set(name, text)
		}
	}
	if err != nil {
		return fmt.Errorf("setting %q: %w", name, err)
	}
	return nil
}

// texts returns a JSON value in the form of flags.
func texts(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case json.Number:
		return []string{v.String()}, nil
	case bool:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		var all []string
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, errors.New("want a list of strings")
			}
			all = append(all, text)
		}
		return all, nil
	}
	return nil, errors.New("want a string, a number, true or false, or a list of strings")
}

func anyOf(list []string) []any {
	all := make([]any, len(list))
	for i, one := range list {
		all[i] = one
	}
	return all
}

func names(flags *pflag.FlagSet) (all []string) {
	flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// start makes the peer.
func (t *trainer) start(ctx context.Context, hello bridge.Hello) (*peer.Peer, error) {
	config, err := t.config(ctx, hello)
	if err != nil {
		return nil, err
	}
	var counts *metrics.Server
	if t.Metrics != "" {
		if counts, err = metrics.Listen(t.Metrics); err != nil {
			return nil, &bridge.Refusal{Code: bridge.CodeSettings, Detail: err.Error(), Remedy: "give --metrics another address"}
		}
		t.ends = append(t.ends, func() { _ = counts.Close() })
	}
	p, err := peer.Start(ctx, config)
	if err != nil {
		return nil, t.remedied(err)
	}
	if counts != nil {
		counts.Serve(p, nil, t.Pprof)
	}
	t.log.Info("a trainer has come: others can join it", zap.Strings("join", p.JoinAddresses()))
	return p, nil
}

// config returns the configuration of the peer. Its identity is that of --key, if given.
func (t *trainer) config(ctx context.Context, hello bridge.Hello) (peer.Config, error) {
	if err := t.takeOver(ctx, hello.Partners); err != nil {
		return peer.Config{}, err
	}
	key, err := hello.Identity, error(nil)
	if t.IdentityPath() != "" {
		key, err = t.Lasting(t.log)
	}
	admission, unfit := t.Admission(t.log)
	if err := errors.Join(err, unfit); err != nil {
		return peer.Config{}, &bridge.Refusal{Code: bridge.CodeSettings, Detail: err.Error(), Remedy: "correct what it names"}
	}
	after, err := t.after(hello, key)
	if err != nil {
		return peer.Config{}, err
	}
	pace, _ := t.Pace()          // Validate has checked both
	policy, _ := t.CodecPolicy() //
	config := peer.Config{
		Run: t.Run, Join: t.Join, Params: hello.Params,
		Network: peer.Network{
			Description: t.description(hello), Log: t.log, Identity: key, Listen: t.Listen, KnownPeers: t.KnownPeers(), Partners: hello.Partners,
			Admission: admission, Reach: t.Reach(), Relay: t.Relays(), Uplink: t.Uplink(), Site: t.Site, Carrier: t.Carrier(), GossipKeys: t.GossipKeys(),
		},
		Training: peer.Training{
			Checkpoint: after, Work: peer.Work{StepsPerPeer: t.Steps, Grace: t.Grace()},
			Exchange:  peer.Exchange{Pace: pace, Codec: policy, Lanes: t.Lanes, Topology: t.Shape()},
			Optimizer: &optim.SGD{}, // the trainer has its own optimizer; this one has no state
		},
	}
	config.Network.Control = control.Config{
		Operator: transport.PeerID(t.Operator), Name: t.PeerName(), Digests: t.DigestEvery(),
	}
	if t.Final == settings.FinalMerge {
		config.Training.Exchange.Final = &merge.Config{Deadline: t.FinalWait}
	}
	return config, nil
}

// after is what lies behind the trainer's model. Who has not kept the key of the peer that trained it comes back as
// another member, unless --key has that key.
func (t *trainer) after(hello bridge.Hello, key ed25519.PrivateKey) (peer.Checkpoint, error) {
	if hello.Last == "" {
		return hello.Checkpoint, nil
	}
	self, err := keys.ID(key)
	if err == nil && self != hello.Last {
		t.log.Warn("this peer comes back as a new member: the one that trained its model had another key; keep one by --key",
			zap.String("was", string(hello.Last)), zap.String("is", string(self)))
	}
	return hello.CheckpointOf(self, len(t.Join)+len(hello.Partners) > 0), err
}

// description is what this peer knows of the run. Different frozen weights are only a warning: those of one base
// model that were rounded differently do no harm.
func (t *trainer) description(hello bridge.Hello) []description.Field {
	known := rundescription.Of(t.Settings, nil).Only("work", "strategy", "topology", "operator", "every", "codec").Fields
	known = append(known, bridge.LayoutField(hello.Params.Layout()))
	if hello.Frozen != "" {
		known = append(known, description.Field{Name: "frozen weights", Value: hello.Frozen, Local: true})
	}
	return description.Of(t.Run, known...).Fields
}

// takeOver asks the members to join, or those of the last run of this peer, for the description of the run, as
// command run does.
func (t *trainer) takeOver(ctx context.Context, partners []peer.Partner) error {
	join := t.Join
	defer func() { t.Join = join }()
	for _, p := range partners {
		for _, address := range p.Addresses {
			t.Join = append(t.Join[:len(t.Join):len(t.Join)], address+"/p2p/"+string(p.ID))
		}
	}
	if len(t.Join) == 0 {
		return nil
	}
	_, err := rundescription.Join(ctx, &t.Settings, t.from, t.log)
	if err == nil && t.Strategy != settings.StrategyADPSGD {
		err = fmt.Errorf("the run's strategy is %s, and a trainer with an optimizer of its own can only take part in %s", t.Strategy, settings.StrategyADPSGD)
	}
	if err != nil {
		return &bridge.Refusal{Code: bridge.CodeRun, Detail: err.Error(), Remedy: "correct what it names", Fatal: true}
	}
	if t.Epochs > 0 {
		t.log.Warn("the run's work is counted in passes over data which this peer does not know: it goes on until its trainer ends it; give the same steps to all instead")
	}
	return nil
}

// remedied is an error of the library with a remedy for the trainer's user.
func (t *trainer) remedied(err error) error {
	remedy := settings.Remedy(err)
	if slices.ContainsFunc(settings.Unusable, func(cause error) bool { return errors.Is(err, cause) }) {
		return &bridge.Refusal{Code: bridge.CodeSettings, Detail: err.Error(), Remedy: strings.TrimSpace(remedy + " correct what it names")}
	}
	return err
}

func (t *trainer) end() {
	for _, end := range slices.Backward(t.ends) {
		end()
	}
	t.ends = nil
}
