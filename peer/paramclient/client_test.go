package paramclient

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// moves pushes a gradient for a range, and waits until the servers have made the step of it, of that share.
func (w *world) moves(c *Client, name string, gradient tensor.Vector, share float32) {
	w.t.Helper()
	before, version := w.pulled(c, name, len(gradient))
	if err := c.Push(w.soon(), name, Gradient{Values: gradient, Samples: 4, Version: version}); err != nil {
		w.t.Fatal(err)
	}
	after, now := w.pulled(c, name, len(gradient))
	for ctx := w.soon(); now.Updates() == version.Updates() && ctx.Err() == nil; after, now = w.pulled(c, name, len(gradient)) {
		time.Sleep(time.Millisecond)
	}
	for i, g := range gradient {
		if want := before[i] - rate*share*g; after[i] != want {
			w.t.Fatalf("value %d of %q is %g after %g, want %g; versions %v and %v", i, name, after[i], before[i], want, version, now)
		}
	}
}

// TestPushAndPull: what is pushed to servers that only serve moves the values of its range, which lies at two of them, and no others.
func TestPushAndPull(t *testing.T) {
	for name, gate := range map[string]baseline.Gate{"asp": baseline.ASP{}, "bsp": baseline.BSP{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c := w.client(w.member("client"))
				w.trainer("b", 2, gate, true)
				w.trainer("c", 2, gate, true)
				w.trainer("d", 2, gate, true)
				for range 3 {
					w.moves(c, "wide", counting(wide), 1)
				}
				if x, _ := w.pulled(c, "narrow", narrow); slices.Max(x) != 0 || slices.Min(x) != 0 {
					t.Errorf("values that nobody has pushed to are %v", x)
				}
				w.moves(c, "narrow", counting(narrow), 1)
			})
		})
	}
}

// TestPushBesideWorkers: while others train, a push counts as one more worker's gradient, and those wait for nobody.
func TestPushBesideWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client(w.member("client"))
		const steps = 200
		var group sync.WaitGroup
		for _, name := range []string{"b", "c"} {
			trainer := w.trainer(name, 2, baseline.BSP{}, false)
			group.Go(func() {
				for range steps {
					err := trainer.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
						time.Sleep(10 * time.Millisecond)
						for i := range narrow {
							grad[wide+3+i] = 1
						}
						return peer.Result{Samples: 1}, nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(time.Second)
		before, version := w.pulled(c, "narrow", narrow)
		pushes := 0
		for began := time.Now(); time.Since(began) < 500*time.Millisecond; pushes++ {
			gradient := make(tensor.Vector, narrow)
			for i := range gradient {
				gradient[i] = -1 // beside two of 1: the mean over four samples is 0
			}
			if err := c.Push(w.soon(), "narrow", Gradient{Values: gradient, Samples: 2, Version: version}); err != nil {
				t.Fatal(err)
			}
			_, next := w.pulled(c, "narrow", narrow)
			for ; next.Updates() == version.Updates(); _, next = w.pulled(c, "narrow", narrow) {
				time.Sleep(time.Millisecond)
			}
			version = next
		}
		after, _ := w.pulled(c, "narrow", narrow)
		began := time.Now()
		group.Wait()
		if took := time.Since(began); took > 2*steps*10*time.Millisecond {
			t.Errorf("the workers have taken %s for the rest of %d steps", took, steps)
		}
		for i := range after {
			if moved := before[i] - after[i]; pushes < 5 || moved > 5*rate {
				t.Errorf("value %d has moved by %g in %d rounds in each of which a push cancels the workers' gradients", i, moved, pushes)
			}
		}
		if last, _ := w.pulled(c, "narrow", narrow); after[0]-last[0] < rate*steps/4 {
			t.Errorf("after the pushes the values move by %g", after[0]-last[0])
		}
	})
}

// TestAServerDies: another takes its place, and the client finds it.
func TestAServerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client(w.member("client"))
		for _, name := range []string{"b", "c", "d"} {
			w.trainer(name, 1, baseline.ASP{}, true)
		}
		w.moves(c, "wide", counting(wide), 1)
		var first wire.Served
		for _, n := range w.all[1:] {
			first, _, _ = c.ask(w.soon(), n.Self(), wire.Values{Layout: c.layout.Hash(), Count: 1}, func(*framed.Stream, int, int) error { return errors.New("enough") })
			if first.Count > 0 {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
				break
			}
		}
		if first.Count == 0 {
			t.Fatal("nobody serves")
		}
		w.moves(c, "wide", counting(wide), 1)
	})
}

// TestWhatIsRefused: the client names what is wrong before anything is sent, and servers refuse what it would not have sent.
func TestWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client(w.member("client"))
		w.trainer("b", 1, baseline.ASP{}, true)
		_, version := w.pulled(c, "narrow", narrow)
		fine := counting(narrow)
		for _, wrong := range []struct {
			what string
			name string
			push Gradient
			want error
		}{
			{"no such name", "wider", Gradient{fine, 1, version}, ErrRange},
			{"not shared", "frozen", Gradient{fine[:3], 1, version}, ErrRange},
			{"too short", "narrow", Gradient{fine[:3], 1, version}, ErrRange},
			{"no samples", "narrow", Gradient{fine, 0, version}, nil},
			{"not finite", "narrow", Gradient{tensor.Vector{0, 0, 0, 0, 0, 0, nan()}, 1, version}, ErrNotFinite},
			{"huge", "narrow", Gradient{tensor.Vector{0, 0, 0, 0, 0, 0, 1e30}, 1, version}, nil},
		} {
			if err := c.Push(w.soon(), wrong.name, wrong.push); err == nil || wrong.want != nil && !errors.Is(err, wrong.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", wrong.what, err)
			}
		}
		if _, err := c.Pull(t.Context(), "narrow", fine[:3]); !errors.Is(err, ErrRange) {
			t.Errorf("pulling into a vector that is too short: %v", err)
		}
		other, err := tensor.NewLayout(tensor.Spec{Name: "narrow", Shape: []int{narrow}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&Client{c.service, c.self, other}).Pull(w.soon(), "narrow", fine); err == nil || !strings.Contains(err.Error(), "layout") {
			t.Errorf("another layout: %v", err)
		}
		if x, _ := w.pulled(c, "narrow", narrow); slices.Max(x) != 0 || slices.Min(x) != 0 {
			t.Fatalf("what was refused has moved the model to %v", x)
		}
		for range MaxStale + 1 {
			w.moves(c, "narrow", counting(narrow), 1)
		}
		if err := c.Push(w.soon(), "narrow", Gradient{fine, 1, version}); !errors.Is(err, ErrStale) {
			t.Errorf("a gradient of %d updates ago: %v", MaxStale+1, err)
		}
		if err := c.Push(w.soon(), "narrow", Gradient{fine, 1, Version{[]part{{wide + 3 + narrow, version.Updates() + 1}}}}); err != nil {
			t.Errorf("a gradient of %d updates ago: %v", MaxStale, err)
		}
	})
}

// TestHostileRequests: none moves the model or keeps the server from others.
func TestHostileRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client(w.member("client"))
		w.trainer("b", 2, baseline.ASP{}, true)
		_, version := w.pulled(c, "narrow", narrow)
		server, layout := w.all[1].Self(), c.layout.Hash()
		for what, request := range map[string]wire.Values{
			"beyond the model":   {Layout: layout, First: wide + 3 + narrow, Count: 1},
			"far beyond it":      {Layout: layout, First: 1 << 62, Count: 1 << 40},
			"longer":             {Layout: layout, First: wide + 3, Count: narrow + 1},
			"over what is apart": {Layout: layout, First: wide - 1, Count: 2},
		} {
			_, begun, err := c.ask(w.soon(), server, request, nil)
			if refusal, ok := errors.AsType[*wire.Refusal](err); begun || !ok || refusal.Reason != wire.ReasonProtocol {
				t.Errorf("%s: %v", what, err)
			}
		}
		request := wire.Values{Layout: layout, First: wide + 3, Count: narrow, Version: version.Updates(), Samples: 1}
		for what, said := range map[string]func(*framed.Stream) error{
			"values that are not finite": func(s *framed.Stream) error { return say(s, tensor.Vector{0, 0, 0, 0, 0, 0, nan()}) },
			"too few of them":            func(s *framed.Stream) error { return say(s, counting(3)) },
			"too many of them":           func(s *framed.Stream) error { return say(s, counting(narrow+1)) },
			"another frame":              func(s *framed.Stream) error { return framed.Say(s, 0, request) },
		} {
			_, begun, err := c.ask(w.soon(), server, request, func(s *framed.Stream, _, _ int) error {
				if err := said(s); err != nil {
					return err
				}
				_, err := s.Receive(&wire.Served{})
				return err
			})
			if refusal, ok := errors.AsType[*wire.Refusal](err); !begun || !ok || refusal.Reason != wire.ReasonProtocol {
				t.Errorf("%s: %v", what, err)
			}
		}
		silent := func(s *framed.Stream, _, _ int) error { time.Sleep(time.Minute); return nil }
		if _, _, err := c.ask(w.t.Context(), server, request, silent); err != nil {
			t.Errorf("one that says nothing: %v", err)
		}
		if x, now := w.pulled(c, "narrow", narrow); slices.Max(x) != 0 || slices.Min(x) != 0 || now.Updates() != version.Updates() {
			t.Errorf("they have moved the model to %v, version %v after %v", x, now, version)
		}
		w.moves(c, "narrow", counting(narrow), 1)
	})
}

func say(s *framed.Stream, values tensor.Vector) error {
	s.Frame = tensor.AppendBytes(wire.Reserve(s.Frame), values)
	return s.Seal(wire.Header{Type: wire.TypeStateSlice})
}

func nan() float32 { zero := float32(0); return zero / zero }

// TestHostileServers: a client that meets one has an error, or asks others until its time is up.
func TestHostileServers(t *testing.T) {
	for what, answers := range map[string]struct {
		answer func(ctx context.Context, s *framed.Stream) error
		want   string
	}{
		"sends what is not finite": {func(_ context.Context, s *framed.Stream) error {
			x := counting(narrow)
			x[0] = nan()
			return errors.Join(framed.Say(s, 0, wire.Served{Count: narrow}), say(s, x))
		}, "not finite"},
		"serves more than was asked for": {func(_ context.Context, s *framed.Stream) error {
			return framed.Say(s, 0, wire.Served{Count: narrow + 1})
		}, "served of"},
		"names one that does not exist": {func(_ context.Context, s *framed.Stream) error {
			return framed.Say(s, 0, wire.Served{Server: "nobody"})
		}, "deadline exceeded"},
		"names the one that asks": {func(_ context.Context, s *framed.Stream) error {
			return framed.Say(s, 0, wire.Served{Server: string(s.Remote())})
		}, "itself"},
		"knows nobody":     {func(_ context.Context, s *framed.Stream) error { return framed.Say(s, 0, wire.Served{}) }, "deadline exceeded"},
		"says nothing":     {func(ctx context.Context, s *framed.Stream) error { <-ctx.Done(); return nil }, "deadline exceeded"},
		"ends at once":     {func(_ context.Context, s *framed.Stream) error { return nil }, "deadline exceeded"},
		"speaks otherwise": {func(_ context.Context, s *framed.Stream) error { return framed.Say(s, 0, wire.Done{}) }, "unknown frame type"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c := w.client(w.member("client"))
				n := w.member("hostile")
				w.trains(n, func(c averaging.Config) (averaging.Machine, error) { return averaging.NewADPSGD(c) })
				service, err := peer.Serve(n, transport.ProtocolValues, func(ctx context.Context, s *framed.Stream) error {
					var request wire.Values
					if _, err := s.Receive(&request); err != nil {
						return err
					}
					return answers.answer(ctx, s)
				})
				if err != nil {
					t.Fatal(err)
				}
				defer service.Close()
				if err := w.all[0].WaitMembers(t.Context(), 2); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // its record tells that it trains
				if _, err := c.Pull(w.soon(), "narrow", make(tensor.Vector, narrow)); err == nil || !strings.Contains(err.Error(), answers.want) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestServersUpdateUnalike: a range of two servers, one of which has made many more updates than the other, takes gradients as ever.
func TestServersUpdateUnalike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client(w.member("client"))
		w.trainer("b", 2, baseline.ASP{}, true)
		w.trainer("c", 2, baseline.ASP{}, true)
		for range MaxStale + 1 {
			w.moves(c, "narrow", counting(narrow), 1)
		}
		w.moves(c, "wide", counting(wide), 1)
		_, version := w.pulled(c, "wide", wide)
		if len(version.parts) != 2 || version.parts[0].update+MaxStale > version.parts[1].update || version.Updates() != version.parts[0].update {
			t.Errorf("version %v", version)
		}
	})
}

// TestOneThatRefuses: a member that says for good that there is nothing, or that the client serves it itself, keeps nobody from the
// members that do serve.
func TestOneThatRefuses(t *testing.T) {
	for what, answer := range map[string]func(s *framed.Stream) error{
		"refuses":                 func(s *framed.Stream) error { s.Refuse(0, wire.ReasonLayout, ""); return nil },
		"names the one that asks": func(s *framed.Stream) error { return framed.Say(s, 0, wire.Served{Server: string(s.Remote())}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			c := w.client(w.member("client"))
			n := w.member("a") // which is asked first
			w.trains(n, func(c averaging.Config) (averaging.Machine, error) { return averaging.NewADPSGD(c) })
			service, err := peer.Serve(n, transport.ProtocolValues, func(_ context.Context, s *framed.Stream) error {
				var request wire.Values
				_, err := s.Receive(&request)
				return errors.Join(err, answer(s))
			})
			if err != nil {
				t.Fatal(err)
			}
			defer service.Close()
			w.trainer("f", 1, baseline.ASP{}, true)
			if err := w.all[0].WaitMembers(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if whom, members := c.member(0); whom != n.Self() || members != 2 {
				t.Fatalf("%s of %d members is asked first", whom, members)
			}
			if _, err := c.Pull(w.soon(), "narrow", make(tensor.Vector, narrow)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// TestOverLoopback is TestPushAndPull over real streams.
func TestOverLoopback(t *testing.T) {
	w := &world{t: t}
	c := w.client(w.member("client"))
	for _, name := range []string{"b", "c"} {
		w.trainer(name, 2, baseline.ASP{}, true)
	}
	for range 2 {
		w.moves(c, "wide", counting(wide), 1)
		w.moves(c, "narrow", counting(narrow), 1)
	}
}
