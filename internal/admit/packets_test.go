package admit

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Packets pass the door that streams do: the list for both ends, and the run's key.
func TestPacketsAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
		raw := make(map[string]*memnet.Transport)
		for _, name := range []string{"host", "member", "foreigner", "keyless", "unlisted"} {
			raw[name] = at(t, n, name)
		}
		guarded := func(name, list string, key []byte) transport.Packets {
			_, guarded := over(t, raw[name], Config{List: list, Key: key})
			return guarded
		}
		host := guarded("host", written(t, raw["host"].Self(), raw["member"].Self(), raw["foreigner"].Self(), raw["keyless"].Self()), key)
		heard := make(map[transport.PeerID]string)
		stop, err := host.HandlePackets(run, func(from transport.PeerID, packet []byte) { heard[from] = string(packet) })
		if err != nil {
			t.Fatal(err)
		}
		stopped := sync.OnceFunc(stop)
		defer stopped()
		full := string(bytes.Repeat([]byte{'x'}, transport.MaxPacket))
		for name, from := range map[string]transport.Packets{
			"member": guarded("member", "", key), "foreigner": guarded("foreigner", "", wrong),
			"keyless": raw["keyless"], "unlisted": guarded("unlisted", "", key),
		} {
			if err := from.SendPacket(raw["host"].Self(), run, []byte(full)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Second)
		stopped() // which waits for the handler
		if len(heard) != 1 || heard[raw["member"].Self()] != full {
			t.Errorf("%d have been heard, the member with %d bytes of %d", len(heard), len(heard[raw["member"].Self()]), len(full))
		}
		if err := host.SendPacket(raw["unlisted"].Self(), run, nil); !errors.Is(err, transport.ErrNotAdmitted) {
			t.Errorf("to one who is not on the list: %v", err)
		}
		if err := host.SendPacket(raw["member"].Self(), run, []byte(full+"x")); !errors.Is(err, transport.ErrNoPackets) {
			t.Errorf("a packet too large: %v", err)
		}
	})
}
