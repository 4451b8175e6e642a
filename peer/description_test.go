package peer_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

func describing(pairs ...string) (fields []description.Field) {
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, description.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return fields
}

// TestInquire: who inquires learns who is there, how far away, what the run is and who says so, and why it would not be let
// in; the member that is asked does not count it among the flock. Who joins with other data hears so before its first step.
func TestInquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: memnet.Link{Delay: 10 * time.Millisecond}})
		begin := func(name, data string, join ...string) *peer.Peer {
			config := peer.Config{Run: "digits", Params: newModel(), Join: join, Network: inMemory(t, network, name, "digits")}
			config.Network.Description = describing("data", data)
			return start(t, config)
		}
		host := begin("host", "mnist")
		if err := step(t, host, idle); err != nil {
			t.Fatal(err)
		}
		asker, err := network.Transport("asker")
		if err != nil {
			t.Fatal(err)
		}
		defer asker.Close()
		layout := newModel().Layout().Hash()
		for _, c := range []struct {
			name, address, run string
			layout             [32]byte
			want               error
		}{
			{"the run", "mem:host", "digits", layout, nil},
			{"no model", "mem:host", "digits", [32]byte{}, nil},
			{"another model", "mem:host", "digits", [32]byte{1}, transport.ErrLayout},
			{"another run", "mem:host", "letters", layout, transport.ErrUnknownRun},
			{"nobody", "mem:nobody", "digits", layout, transport.ErrUnreachable},
		} {
			found, err := peer.Admission{}.Inquire(t.Context(), asker, c.address, c.run, c.layout)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if near := found.RoundTrip >= 20*time.Millisecond && found.RoundTrip <= 60*time.Millisecond; near == (found.Peer != host.Self()) || near == errors.Is(c.want, transport.ErrUnreachable) {
				t.Errorf("%s: found %s, a round trip of 20 ms away, after %s", c.name, found.Peer, found.RoundTrip)
			}
			value, _ := found.Description.Value("data")
			if c.run == "digits" && c.address == "mem:host" && (value != "mnist" || found.Signer != host.Self() || (found.FlockSteps == 1) != (err == nil)) {
				t.Errorf("%s: found %+v", c.name, found)
			}
		}
		if _, err := (peer.Admission{}).Inquire(t.Context(), asker, "mem:host", "", layout); err == nil {
			t.Error("a run without a name was asked for")
		}
		if s := host.Stats(); s.Members != 1 {
			t.Errorf("%d members after inquiries", s.Members)
		}
		mismatch, ok := errors.AsType[*description.MismatchError](step(t, begin("other", "fashion", "mem:host"), idle))
		if !ok || mismatch.Peer != host.Self() || len(mismatch.Differences) != 1 || host.Stats().Members != 1 {
			t.Errorf("with other data: %v, among %d members", mismatch, host.Stats().Members)
		}
	})
	config := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Description: []description.Field{{Name: "", Value: "x"}}}}
	if _, err := peer.Start(t.Context(), config); err == nil {
		t.Error("a field without a name describes a run")
	}
}

// TestADescriptionIsRenewed: members that have found out more of the run together pass that on, signed by who
// began it, or by one of them where he has gone; one that is set up otherwise hears so, from whomever it joins.
func TestADescriptionIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		join := func(name, of string, fields ...description.Field) *peer.Node {
			config := inMemory(t, network, name, "digits")
			config.Run, config.Description = "digits", description.Of("", fields...).Fields
			if of != "" {
				config.Join = []string{"mem:" + of}
			}
			n, err := peer.Join(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = n.Close() })
			return n
		}
		verifier, err := network.Transport("verifier")
		if err != nil {
			t.Fatal(err)
		}
		defer verifier.Close()
		found := func(at *peer.Node) (transport.PeerID, string) {
			d, err := at.Description().Open(verifier, "digits")
			if err != nil {
				t.Error(err)
			}
			value, _ := d.Value("columns")
			return at.Description().Signer, value
		}
		renew := func(name string, columns []string, all ...*peer.Node) []error {
			faults := make([]error, len(all))
			var group sync.WaitGroup
			for i, n := range all {
				group.Go(func() {
					var peers int
					peers, faults[i] = n.Describe(t.Context(), name, description.Of("", describing("columns", columns[i], "data", "csv")...).Fields)
					if peers != len(all) {
						t.Errorf("%q of %d", name, peers)
					}
				})
			}
			group.Wait()
			return faults
		}
		founder := join("z-founder", "", describing("data", "csv")...)
		second := join("second", "z-founder", describing("data", "csv")...)
		time.Sleep(time.Second) // so that it has the founder's word when it passes that on
		third := join("third", "second", describing("data", "csv")...)
		for _, n := range []*peer.Node{founder, second, third} {
			if err := n.WaitMembers(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(renew("found", []string{"7", "7", "7"}, founder, second, third)...); err != nil {
			t.Fatal(err)
		}
		for _, n := range []*peer.Node{founder, second, third} {
			if signer, columns := found(n); signer != founder.Self() || columns != "7" {
				t.Errorf("%s passes on %q of %s", n.Self(), columns, signer)
			}
		}
		trainer, err := third.Train(t.Context(), peer.Training{Params: newModel(), Checkpoint: peer.Checkpoint{}.Describing(founder.Description())})
		if err != nil {
			t.Fatal(err)
		}
		var saved peer.Saved
		if err := trainer.SaveAll(&saved); err != nil || saved.Checkpoint.Said().Description.Signer != founder.Self() || !bytes.Contains(saved.Checkpoint.Said().Description.Text, []byte("columns")) {
			t.Errorf("its checkpoint is of %s", saved.Checkpoint.Said().Description.Text)
		}
		late := join("late", "third", describing("columns", "8")...)
		if err := late.WaitMembers(t.Context(), 4); !errors.As(err, new(*description.MismatchError)) {
			t.Errorf("one with other columns: %v", err)
		}
		if err := founder.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := errors.Join(renew("without the founder", []string{"9", "9"}, second, third)...); err != nil {
			t.Fatal(err)
		}
		signer, columns := found(second)
		again, alike := found(third)
		if signer == founder.Self() || signer != again || columns != "9" || alike != "9" {
			t.Errorf("they pass on %q of %s, and %q of %s", columns, signer, alike, again)
		}
		faults := renew("otherwise", []string{"10", "11"}, second, third)
		if one := errors.Join(faults...); (faults[0] == nil) == (faults[1] == nil) || !errors.As(one, new(*description.MismatchError)) {
			t.Errorf("set up otherwise: %v", faults)
		}
	})
}
