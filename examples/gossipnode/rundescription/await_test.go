package rundescription

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// process is one of gossipnode run in virtual time: it waits, trains, and begins anew where it has to.
type process struct {
	name    string
	delay   time.Duration // until it is started
	join    []string      // names
	founder string        // that its token names
	args    []string

	from    cli.Origins
	s       settings.Settings
	self    transport.PeerID
	began   time.Duration // its first step, from the start of the world; 0 if there was none
	anew    int
	members int
	said    []string
	err     error
}

// idOf is the id of a process.
func idOf(t *testing.T, network *memnet.Network, name string) transport.PeerID {
	t.Helper()
	tr, err := network.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	return tr.Self()
}

// live runs the processes of a world for some time.
func live(t *testing.T, seed uint64, bound time.Duration, all ...*process) {
	t.Helper()
	network := memnet.New(memnet.Config{Seed: seed, Link: memnet.Link{Delay: 5 * time.Millisecond}})
	for _, p := range all {
		p.s, p.from = given(t, p.args...)
		for _, other := range p.join {
			p.s.Join = append(p.s.Join, "mem:"+other)
		}
		if p.founder != "" {
			p.s.Founder = string(idOf(t, network, p.founder))
		}
		p.self = idOf(t, network, p.name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	var living sync.WaitGroup
	for start, i := time.Now(), 0; i < len(all); i++ {
		living.Go(func() { all[i].live(ctx, network, start) })
	}
	living.Wait()
}

func (p *process) live(ctx context.Context, network *memnet.Network, start time.Time) {
	time.Sleep(p.delay)
	if len(p.s.Join) > 0 {
		tr, err := network.Transport(p.name)
		if err == nil {
			_, err = await(ctx, tr, &p.s, p.from, zap.NewNop(), func(line string) { p.said = append(p.said, line) })
			tr.Close()
		}
		if p.err = err; err != nil {
			return
		}
	}
	for ctx.Err() == nil {
		taken, err := Retake(&p.s, p.from, p.train(ctx, network, start))
		if len(taken) == 0 {
			p.err = err
			return
		}
		p.anew++
	}
}

// train takes part until ctx ends.
func (p *process) train(ctx context.Context, network *memnet.Network, start time.Time) error {
	tr, err := network.Transport(p.name)
	if err != nil {
		return err
	}
	defer tr.Close()
	membership, err := network.Membership(tr, p.s.Run)
	if err != nil {
		return err
	}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{4}})
	if err != nil {
		return err
	}
	one, err := peer.Start(ctx, peer.Config{
		Run:      p.s.Run,
		Params:   tensor.NewParams(layout),
		Join:     p.s.Join,
		Network:  peer.Network{Description: Of(p.s, nil).Fields, Transport: tr, Membership: membership},
		Training: peer.Training{Checkpoint: peer.Checkpoint{}.Describing(p.s.Described)},
	})
	if err != nil {
		return err
	}
	defer one.Close()
	for ctx.Err() == nil {
		err := one.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) {
			if p.began == 0 {
				p.began = time.Since(start)
			}
			return peer.Result{}, nil
		})
		if err != nil {
			return err
		}
		p.members = one.Stats().Members
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}

// check sees to it that all are in one run, with this rate, and that nobody has begun anew.
func check(t *testing.T, rate float64, all ...*process) {
	t.Helper()
	for _, p := range all {
		if p.err != nil && !strings.Contains(p.err.Error(), context.DeadlineExceeded.Error()) || p.s.Rate() != rate || p.members != len(all) || p.anew > 0 {
			t.Errorf("%s, up at %s: rate %v, want %v; began at %s, %d times anew; %d of %d members; %v", p.name, p.delay, p.s.Rate(), rate, p.began, p.anew, p.members, len(all), p.err)
		}
	}
}

// TestStartedInAnyOrder: three that know only a token, of the founder or of each other, and the
// founder, who is started before, among or after them: all train in one run, and nobody before
// the founder is there.
func TestStartedInAnyOrder(t *testing.T) {
	const worlds = 16
	for seed := range uint64(worlds) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 31))
			gap := func() time.Duration { return time.Duration(rng.Int64N(int64(30 * time.Second))) }
			founder := &process{name: "founder", delay: gap(), args: []string{"--lr=0.07"}}
			all := []*process{founder}
			for i := range 3 {
				p := &process{name: fmt.Sprint("joiner", i), delay: gap(), founder: "founder", join: []string{"founder"}}
				if i > 0 && rng.IntN(2) == 0 {
					p.join[0] = fmt.Sprint("joiner", rng.IntN(i)) // which waits itself
				}
				all = append(all, p)
			}
			live(t, seed, 60*time.Second, all...)
			check(t, 0.07, all...)
			for _, p := range all {
				if p.began < founder.delay {
					t.Errorf("seed %d: %s began at %s, before the founder came at %s", seed, p.name, p.began, founder.delay)
				}
			}
		})
	}
}

// TestWhoWaitForEachOther: if none of those that are waited for knows what the run is, one begins,
// soon after the last has come: the founder, or else who was told most.
func TestWhoWaitForEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		join [3][]string
		args [3][]string
		rate float64
	}{
		"a circle":                      {join: [3][]string{{"b"}, {"c"}, {"a"}}, rate: 0.03},
		"one list for all":              {join: [3][]string{{"a", "b", "c"}, {"a", "b", "c"}, {"a", "b", "c"}}, rate: 0.03},
		"who was told most begins":      {join: [3][]string{{"b"}, {"c", "a"}, {"a"}}, args: [3][]string{nil, {"--lr=0.07"}, nil}, rate: 0.07},
		"its own address, and a joiner": {join: [3][]string{{"a"}, {"a"}, {"b"}}, args: [3][]string{{"--lr=0.02"}, nil, nil}, rate: 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(8) {
				synctest.Test(t, func(t *testing.T) {
					var all []*process
					for i, own := range []string{"a", "b", "c"} {
						all = append(all, &process{name: own, delay: time.Duration(i*3) * time.Second, join: c.join[i], args: c.args[i]})
					}
					live(t, seed, 30*time.Second, all...)
					check(t, c.rate, all...)
					for _, p := range all {
						if p.began > 15*time.Second {
							t.Errorf("%s began at %s", p.name, p.began)
						}
					}
				})
			}
		})
	}
}

// TestWhomNobodyTells: one that nobody tells what the run is says that it waits, and trains alone
// after --join-wait; if its founder comes after all, it begins anew with the settings of that, and
// one with a setting of its own that differs is at fault.
func TestWhomNobodyTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		founder := &process{name: "founder", delay: 90 * time.Second, args: []string{"--lr=0.07"}}
		bare := &process{name: "bare", join: []string{"founder"}}
		own := &process{name: "own", join: []string{"founder"}, args: []string{"--lr=0.5", "--join-wait=20s"}}
		live(t, 1, 150*time.Second, founder, bare, own)
		if bare.began < time.Minute || bare.began > time.Minute+5*time.Second || len(bare.said) != 5 || bare.anew != 1 || bare.s.Rate() != 0.07 || bare.members != 2 {
			t.Errorf("%+v", bare)
		}
		if own.began < 20*time.Second || own.began > 25*time.Second || own.anew != 0 || cli.ExitCode(own.err) != cli.ExitUsage || !strings.Contains(own.err.Error(), "leave out --lr") {
			t.Errorf("began at %s, %d times anew: %v", own.began, own.anew, own.err)
		}
	})
}

// TestWhoBeganTheRun: a run that another has begun than the token says is refused, unless the member
// that the token names says so itself.
func TestWhoBeganTheRun(t *testing.T) {
	found := peer.Inquiry{Peer: "member", Signer: "another", Description: description.Of("murmuration", description.Field{Name: "lr", Value: "1"})}
	s := settings.Settings{}
	for founder, addresses := range map[string]map[string]bool{
		"":        {"192.0.2.7:4001": true},
		"another": {"192.0.2.7:4001": true},
		"founder": {"192.0.2.7:4001": false, "/ip4/192.0.2.7/tcp/4001/p2p/member": true, "/ip4/192.0.2.7/tcp/4001/p2p/other": false},
	} {
		for address, taken := range addresses {
			s.Founder = founder
			got, _, err := descriptionIn([]answer{{address: address, found: found}}, s, zap.NewNop())
			if (err == nil) != taken || (got.Signer == "another") != taken || err != nil && cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("founder %q, %s: %+v, %v", founder, address, got, err)
			}
		}
	}
}
