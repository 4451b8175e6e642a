package session_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestChecksumsAreLeftOut: where both sides' transports are sealed, and nowhere else, slices
// go without checksums, and the exchange is what it is otherwise.
func TestChecksumsAreLeftOut(t *testing.T) {
	for _, codec := range []string{"raw", "lattice6+4"} {
		for _, sealed := range [][2]bool{{}, {true, false}, {false, true}, {true, true}} {
			t.Run(fmt.Sprint(codec, sealed), func(t *testing.T) {
				x := newPair(t, setting{codec: codec, values: 40, slice: 8, lanes: 2, window: 2, sealed: sealed})
				x.quiet = true
				slices, unsummed := 0, 0
				x.change = func(_ string, frame []byte) []byte {
					flags := binary.LittleEndian.Uint32(frame[4:])
					switch typ := wire.Type(frame[3]); typ {
					case wire.TypeCode, wire.TypeDiff, wire.TypeAck:
						slices++
						if flags == wire.FlagUnsummed && binary.LittleEndian.Uint32(frame[28:]) == 0 {
							unsummed++
						}
					default:
						if flags&^wire.FlagSealed != 0 {
							t.Errorf("%v has flags %#x", typ, flags)
						}
					}
					return frame
				}
				x.propose(1)
				x.run(-1)
				if r := x.results["A"]; r.Outcome != session.Finished {
					t.Fatalf("the exchange ended as %+v", r)
				}
				want := 0
				if sealed == [2]bool{true, true} {
					want = slices
				}
				if slices < 10 || unsummed != want {
					t.Errorf("%d of %d frames have no checksum, want %d", unsummed, slices, want)
				}
			})
		}
	}
}
