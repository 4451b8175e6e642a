package swim

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/transport"
)

var million = flag.Bool("million", false, "feed a million spoilt records to the book, not a few thousand")

// Whatever metadata comes for a member, it is refused for a reason that is known, or is
// the one encoding of what it says; the book neither crashes nor grows.
func TestSpoiltRecords(t *testing.T) {
	records := 20_000
	if *million {
		records = 1_000_000
	}
	rnd := rand.New(rand.NewPCG(6, 8))
	self, alice := newIdentity(t, "self"), newIdentity(t, "alice")
	s := sampleStatement(alice.Self())
	s.mark = make([]byte, transport.MaxMark)
	good := [][]byte{forge(t, alice, func(*statement) {}), forge(t, alice, func(o *statement) { *o = s })}
	known := []error{errOversize, errTruncated, errTrailing, errVersion, errMalformed, errSignature, errOtherRun, errOldRecord}
	b := newBook(self, testRun, 1, func() {})
	var before, after runtime.MemStats
	admitted, reasons := 0, map[error]int{}
	for i := range records {
		if i == records/10 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		meta := bytes.Clone(good[rnd.IntN(len(good))])
		switch rnd.IntN(8) {
		case 0:
			meta = meta[:rnd.IntN(len(meta)+1)]
		case 1:
			meta = slices.Insert(meta, rnd.IntN(len(meta)-signatureSize), byte(rnd.Uint32()))
		case 2:
			meta = append(meta, make([]byte, rnd.IntN(1024))...)
		case 3:
			meta = make([]byte, rnd.IntN(600))
			for k := range meta {
				meta[k] = byte(rnd.Uint32())
			}
		case 4: // as it is
		default:
			for range 1 + rnd.IntN(3) {
				meta[rnd.IntN(len(meta)-signatureSize)] ^= 1 << rnd.IntN(8)
			}
		}
		body, _, err := split(meta)
		if err == nil {
			var s statement
			if s, err = decode(alice.Self(), body); err == nil {
				if again, err := s.encode(); err != nil || !bytes.Equal(again, body) {
					t.Fatalf("% x is read as % x, %v", body, again, err)
				}
			}
		}
		if err == nil && i%16 != 0 {
			continue // signatures take their time
		}
		switch err := b.admit(alice.Self(), meta); {
		case err == nil:
			admitted++
		default:
			k := slices.IndexFunc(known, func(one error) bool { return errors.Is(err, one) })
			if k < 0 {
				t.Fatalf("refused for %v", err)
			}
			reasons[known[k]]++
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 256<<10 || len(b.entries) != 1 {
		t.Errorf("%d records have left %d bytes and %d members behind", records, grown, len(b.entries))
	}
	for _, reason := range []error{errOversize, errTruncated, errTrailing, errVersion, errMalformed, errSignature, errOtherRun} {
		if reasons[reason] == 0 {
			t.Errorf("no record was refused because it %v", reason)
		}
	}
	if admitted == 0 {
		t.Error("no record was admitted")
	}
	t.Logf("%d records: %d admitted, heap %+d bytes", records, admitted, int64(after.HeapAlloc)-int64(before.HeapAlloc))
}
