package peer_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// TestWithNoDonorANewcomerTrainsAloneAndSaysSo: the flock has trained, and dies
// before it can give its model.
func TestWithNoDonorANewcomerTrainsAloneAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f *flockOf
		f = startStates(t, 2, memnet.Link{Delay: time.Millisecond}, func(prepared *flockOf) {
			for i := range 2 {
				prepared.alter[i] = func(typ wire.Type, frame []byte) []byte {
					if typ == wire.TypeManifest {
						f.crash(i)
					}
					return frame
				}
			}
		})
		late := f.Add()
		began := time.Now()
		first := firstSnapshot(t, late)
		if took := time.Since(began); took < 5*time.Second || took > 20*time.Second {
			t.Errorf("gave the model up after %s", took)
		}
		for i, v := range newModel().Vector() {
			if first[i] != v {
				t.Fatalf("value %d is %g, its own was %g", i, first[i], v)
			}
		}
		if s := late.Stats().State; !s.Alone || s.Servers != 0 || f.logged.FilterMessageSnippet("training alone").Len() != 1 {
			t.Errorf("%+v; logged %v", s, f.logged.All())
		}
	})
}

// TestEverybodyIsALatecomer: the only peer that has trained dies while it gives its
// model to all the others. They begin with the values that all began with.
func TestEverybodyIsALatecomer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f *flockOf
		var given atomic.Int64
		f = startStates(t, 1, memnet.Link{Delay: time.Millisecond}, func(prepared *flockOf) {
			prepared.alter[0] = func(typ wire.Type, frame []byte) []byte {
				if typ == wire.TypeStateSlice && given.Add(1) == 10 {
					f.crash(0)
				}
				return frame
			}
		})
		late := []*peer.Peer{f.Add(), f.Add(), f.Add()}
		done := make(chan []float32, len(late))
		for _, p := range late {
			go func() { done <- firstSnapshot(t, p) }()
		}
		for range late {
			first := <-done
			for i, v := range newModel().Vector() {
				if first[i] != v {
					t.Fatalf("value %d is %g, all began with %g", i, first[i], v)
				}
			}
		}
		f.Peers = late
		f.TrainSteps(t.Context(), 200, atPace(10*time.Millisecond, towards))
		for i, p := range late {
			if s := p.Stats(); s.Exchanges.Completed() == 0 {
				t.Errorf("peer %d does not exchange: %+v", i, s)
			}
		}
	})
}

// TestNoHonestDonorKeepsANewcomerOut: with members there that offer nothing usable,
// values of its own would set the flock back.
func TestNoHonestDonorKeepsANewcomerOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 1, memnet.Link{}, func(f *flockOf) {
			f.alter[0] = func(typ wire.Type, frame []byte) []byte {
				if typ == wire.TypeManifest {
					return remanifest(frame, nil, func(m *wire.Manifest) { m.Steps++ })
				}
				return frame
			}
		})
		late := f.Add()
		err := step(t, late, idle)
		fault, ok := errors.AsType[*copying.ServerError](err)
		if !ok || fault.Fault != copying.Forged || !strings.Contains(err.Error(), "another address") {
			t.Errorf("a newcomer among liars: %v", err)
		}
	})
}

// TestADonorTrainsAndExchangesMeanwhile: a copy that takes long holds up neither its
// trainer nor its partners.
func TestADonorTrainsAndExchangesMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 4, memnet.Link{Delay: time.Millisecond}, func(f *flockOf) {
			for i := range 4 {
				f.alter[i] = func(typ wire.Type, frame []byte) []byte {
					if typ == wire.TypeStateSlice {
						time.Sleep(400 * time.Millisecond)
					}
					return frame
				}
			}
		})
		late := f.addWith(t, func(*peer.Config) {})
		arrived := make(chan []float32, 1)
		go func() { arrived <- firstSnapshot(t, late) }()
		time.Sleep(2 * time.Second) // the copy is under way
		exchanges := func() (all uint64) {
			for _, p := range f.Peers {
				all += p.Stats().Exchanges.Completed()
			}
			return all
		}
		joiners := func() (all int) {
			for _, p := range f.Peers {
				all += p.Stats().State.Joiners
			}
			return all
		}
		before, began := exchanges(), time.Now()
		if joiners() != copying.Donors {
			t.Fatalf("%d donors at work", joiners())
		}
		f.TrainSteps(t.Context(), 200, atPace(10*time.Millisecond, towards))
		if took, done := time.Since(began), exchanges()-before; took > 2100*time.Millisecond || done < 200 {
			t.Errorf("200 steps of 10 ms took %s, with %d exchanges", took, done)
		}
		if joiners() == 0 {
			t.Error("the copy was over too soon to tell")
		}
		checkTrained(t, <-arrived, 4)
	})
}

// TestClosingEndsACopy: on either side, in time.
func TestClosingEndsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 1, memnet.Link{Delay: time.Millisecond, Bandwidth: 100}, nil)
		late := f.addWith(t, func(*peer.Config) {})
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := late.Step(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a step before the model is here: %v", err)
		}
		began := time.Now()
		if err := late.Close(); err != nil || time.Since(began) > peer.Stall+time.Second {
			t.Errorf("the newcomer: %v, after %s", err, time.Since(began))
		}
		began = time.Now()
		if err := f.Peers[0].Close(); err != nil || time.Since(began) > peer.Stall+time.Second {
			t.Errorf("the donor: %v, after %s", err, time.Since(began))
		}
	})
}
