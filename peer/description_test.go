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
		fields = append(fields, description.Field{Name: pairs[i], Value: pairs[i+1], Local: pairs[i] == "batch"})
	}
	return fields
}

// TestARunDescribesItself: who joins with other data is told before its first step, by each
// difference; who differs in what is its own to choose, or says nothing, takes part. The
// description of the first is passed on by those who have joined it, and found by one that
// only asks, even about a model of another layout.
func TestARunDescribesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		begin := func(name, join string, fields ...description.Field) *peer.Peer {
			config := peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, name, "digits")}
			config.Network.Description = description.Of("", fields...).Fields
			if join != "" {
				config.Join = []string{"mem:" + join}
			}
			return start(t, config)
		}
		founder := begin("founder", "", describing("data", "mnist", "rate", "0.1", "batch", "32")...)
		silent := begin("silent", "founder")
		if err := silent.WaitMembers(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		other := begin("other", "silent", describing("data", "fashion", "rate", "0.5", "batch", "32")...)
		err := step(t, other, idle)
		mismatch, ok := errors.AsType[*description.MismatchError](err)
		if !ok || mismatch.Peer != silent.Self() || len(mismatch.Differences) != 2 {
			t.Fatalf("with other data: %v", err)
		}
		if d := mismatch.Differences[0]; d != (description.Difference{Field: "data", Here: "fashion", There: "mnist"}) {
			t.Errorf("%+v", d)
		}
		if s := founder.Stats(); s.Members != 2 {
			t.Errorf("%d members", s.Members)
		}
		smaller := begin("smaller", "silent", describing("data", "mnist", "batch", "8")...)
		if err := step(t, smaller, idle); err != nil {
			t.Errorf("with batches of its own: %v", err)
		}
		asker, err := network.Transport("asker")
		if err != nil {
			t.Fatal(err)
		}
		defer asker.Close()
		declined := smaller.Stats().Exchanges.Declined
		if _, err := (peer.Admission{}).Inquire(t.Context(), asker, "mem:smaller", "digits", [32]byte{}); err != nil || smaller.Stats().Exchanges.Declined != declined {
			t.Errorf("asked by one without a model: %v, declined %v times", err, smaller.Stats().Exchanges.Declined-declined)
		}
		found, err := peer.Admission{}.Inquire(t.Context(), asker, "mem:smaller", "digits", [32]byte{1})
		if value, _ := found.Description.Value("rate"); !errors.Is(err, transport.ErrLayout) || value != "0.1" || found.Signer != founder.Self() {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

// TestADescriptionOutlivesItsFounder: a member that comes back from its checkpoint passes on
// what the founder has signed, unless it has been set up otherwise since.
func TestADescriptionOutlivesItsFounder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		config := peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "founder", "digits")}
		config.Network.Description = description.Of("", describing("data", "mnist")...).Fields
		founder := start(t, config)
		var saved peer.Saved
		if err := founder.SaveAll(&saved); err != nil {
			t.Error(err)
		}
		for want, data := range map[transport.PeerID]string{founder.Self(): "mnist", "": "fashion"} {
			again := config
			again.Params, again.Network = newModel(), inMemory(t, network, "again-"+data, "digits")
			again.Network.Description = description.Of("", describing("data", data)...).Fields
			again.Training.Checkpoint = saved.Checkpoint
			p := start(t, again)
			if want == "" {
				want = p.Self()
			}
			asker, err := network.Transport("asker-" + data)
			if err != nil {
				t.Fatal(err)
			}
			found, err := peer.Admission{}.Inquire(t.Context(), asker, "mem:again-"+data, "digits", newModel().Layout().Hash())
			if value, _ := found.Description.Value("data"); err != nil || found.Signer != want || value != data {
				t.Errorf("%s: found %+v, %v", data, found, err)
			}
			asker.Close()
		}
	})
}

// TestADescriptionOfAnotherRunIsRefused: a fault of the configuration, with all others.
func TestADescriptionOfAnotherRunIsRefused(t *testing.T) {
	config := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Description: []description.Field{{Name: "", Value: "x"}}}}
	if _, err := peer.Start(t.Context(), config); err == nil {
		t.Error("it has begun")
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
