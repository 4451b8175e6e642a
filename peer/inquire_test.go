package peer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Who inquires learns who is there, how far away, and why it would not be let in;
// the member that is asked does not count it among the flock.
func TestInquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{Link: memnet.Link{Delay: 10 * time.Millisecond}})
		host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "host", "digits")})
		if err := step(t, host, idle); err != nil {
			t.Fatal(err)
		}
		asker, err := network.Transport("asker")
		if err != nil {
			t.Fatal(err)
		}
		defer asker.Close()
		layout := newModel().Layout().Hash()
		found, err := peer.Admission{}.Inquire(t.Context(), asker, "mem:host", "digits", layout)
		if err != nil || found.Peer != host.Self() || found.FlockSteps != 1 {
			t.Errorf("found %+v, %v", found, err)
		}
		if found.RoundTrip < 20*time.Millisecond || found.RoundTrip > 60*time.Millisecond {
			t.Errorf("a round trip of %v where one takes 20 ms", found.RoundTrip)
		}
		for _, c := range []struct {
			name, address, run string
			layout             [32]byte
			want               error
		}{
			{"another model", "mem:host", "digits", [32]byte{1}, transport.ErrLayout},
			{"another run", "mem:host", "letters", layout, transport.ErrUnknownRun},
			{"nobody", "mem:nobody", "digits", layout, transport.ErrUnreachable},
		} {
			found, err := peer.Admission{}.Inquire(t.Context(), asker, c.address, c.run, c.layout)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if reached := found.Peer != "" && found.RoundTrip > 0; reached != (c.want != transport.ErrUnreachable) {
				t.Errorf("%s: found %+v", c.name, found)
			}
		}
		if _, err := (peer.Admission{}).Inquire(t.Context(), asker, "mem:host", "", layout); err == nil {
			t.Error("a run without a name was asked for")
		}
		if s := host.Stats(); s.Members != 1 {
			t.Errorf("%d members after inquiries", s.Members)
		}
	})
}
