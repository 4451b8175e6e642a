package arrival_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestAJoinerToldOfAnotherVersionSaysSo: whichever side notices that the versions differ, the joiner's
// wait ends with an error that names it, and what to do.
func TestAJoinerToldOfAnotherVersionSaysSo(t *testing.T) {
	for name, answer := range map[string]func() ([]byte, error){
		"the host refuses": func() ([]byte, error) { return wire.Pack(nil, 0, wire.Refuse{Reason: wire.ReasonVersion}) },
		"the host answers in a newer version": func() ([]byte, error) {
			const atVersion = 2 // of a frame's header (docs/WIRE.md)
			frame, err := wire.Pack(nil, 0, wire.Welcome{Incarnation: 1})
			frame[atVersion]++
			return frame, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{})
				host, err := network.Transport("host")
				if err != nil {
					t.Fatal(err)
				}
				defer host.Close()
				stop, err := host.Handle(transport.ProtocolHello, run, func(stream transport.Stream) {
					defer stream.Close()
					frame, err := answer()
					if _, _, heard := wire.NewReader(stream, 0).Next(); errors.Join(err, heard) != nil {
						t.Error(err, heard)
					}
					stream.Write(frame)
				})
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				guest := arrive(t, network, "guest", 3, "mem:host")
				guest.Arrival.Begin()
				var refused *transport.RefusedError
				if err := guest.Wait(t.Context()); !errors.As(err, &refused) || refused.Why != transport.ErrUnknownProtocol || refused.Peer != host.Self() || refused.Remedy == "" {
					t.Errorf("the guest waits in vain: %v, want %v and what to do", err, transport.ErrUnknownProtocol)
				}
			})
		})
	}
}
