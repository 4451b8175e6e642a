package admit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Packets pass the door that streams do: the list for both ends, and the run's key.
func TestPacketsAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})
		key, other := bytes.Repeat([]byte{1}, seam.MinRunKey), bytes.Repeat([]byte{2}, seam.MinRunKey)
		raw := make(map[string]*memnet.Transport)
		for _, name := range []string{"host", "member", "foreigner", "keyless", "unlisted"} {
			transport, err := n.Transport(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { transport.Close() })
			raw[name] = transport
		}
		list := filepath.Join(t.TempDir(), "list")
		var ids []byte
		for _, name := range []string{"host", "member", "foreigner", "keyless"} {
			ids = append(append(ids, raw[name].Self()...), '\n')
		}
		if err := os.WriteFile(list, ids, 0o600); err != nil {
			t.Fatal(err)
		}
		guarded := func(name, list string, key []byte) seam.Packets {
			g, err := New(Config{Run: "digits", Log: zap.NewNop(), List: list, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			return g.Over(raw[name])
		}
		host := guarded("host", list, key)
		heard := make(map[seam.PeerID]string)
		stop, err := host.HandlePackets("digits", func(from seam.PeerID, packet []byte) { heard[from] = string(packet) })
		if err != nil {
			t.Fatal(err)
		}
		stopped := sync.OnceFunc(stop)
		defer stopped()
		full := string(bytes.Repeat([]byte{'x'}, seam.MaxPacket))
		for name, from := range map[string]seam.Packets{
			"member": guarded("member", "", key), "foreigner": guarded("foreigner", "", other),
			"keyless": raw["keyless"], "unlisted": guarded("unlisted", "", key),
		} {
			if err := from.SendPacket(raw["host"].Self(), "digits", []byte(full)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Second)
		stopped() // which waits for the handler
		if len(heard) != 1 || heard[raw["member"].Self()] != full {
			t.Errorf("%d have been heard, the member with %d bytes of %d", len(heard), len(heard[raw["member"].Self()]), len(full))
		}
		if err := host.SendPacket(raw["unlisted"].Self(), "digits", nil); !errors.Is(err, seam.ErrNotAdmitted) {
			t.Errorf("to one who is not on the list: %v", err)
		}
		if err := host.SendPacket(raw["member"].Self(), "digits", []byte(full+"x")); !errors.Is(err, seam.ErrNoPackets) {
			t.Errorf("a packet too large: %v", err)
		}
	})
}
