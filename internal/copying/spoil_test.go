package copying_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// odd begins the name of a state server whose frames a test may spoil, or that leaves.
const odd = "odd"

// spoil makes another payload of a frame's, or does something else at its sight. The state server's
// key is at hand.
type spoil func(by transport.Identity, typ wire.Type, payload []byte) []byte

// spoiled is a stream of frames that are spoiled, and sealed again.
type spoiled struct {
	transport.Stream
	by    transport.Identity
	spoil spoil
}

func (s *spoiled) Write(frame []byte) (int, error) {
	header, payload, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
	altered := append(wire.Reserve(nil), s.spoil(s.by, header.Type, payload)...)
	if err = errors.Join(err, wire.Seal(altered, header)); err == nil {
		_, err = s.Stream.Write(altered)
	}
	return len(frame), err
}

// manifest spoils manifests, and signs them anew if so.
func manifest(sign bool, edit func(*wire.Manifest)) spoil {
	return func(by transport.Identity, typ wire.Type, payload []byte) []byte {
		var m wire.Manifest
		if typ != wire.TypeManifest || m.Decode(payload) != nil {
			return payload
		}
		if edit(&m); sign {
			m.Signature, _ = by.Sign(m.Statement(nil))
		}
		return m.Append(nil)
	}
}

// hashes spoils those of slices.
func hashes(edit func(transport.Identity, *wire.StateHashes)) spoil {
	return func(by transport.Identity, typ wire.Type, payload []byte) []byte {
		var m wire.StateHashes
		if typ != wire.TypeStateHashes || m.Decode(payload) != nil {
			return payload
		}
		edit(by, &m)
		return m.Append(nil)
	}
}

// slice spoils slices.
func slice(edit func(payload []byte)) spoil {
	return func(_ transport.Identity, typ wire.Type, payload []byte) []byte {
		if typ == wire.TypeStateSlice {
			edit(payload)
		}
		return payload
	}
}

// TestWhatADonorSigns: one whose manifest, hashes or slices are not what they should be is
// found out before anything of it is kept, by its manifest before a slice is asked for, and not
// asked again; who lied is reported.
func TestWhatADonorSigns(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  spoil
		want   copying.Fault
		lied   bool
		signed bool // the manifest tells
	}{
		"a forged signature":  {manifest(false, func(m *wire.Manifest) { m.Signature[0]++ }), copying.Forged, true, true},
		"altered steps":       {manifest(false, func(m *wire.Manifest) { m.FlockSteps = 1 << 60 }), copying.Forged, true, true},
		"another donor":       {manifest(true, func(m *wire.Manifest) { m.Server = "somebody" }), copying.Forged, true, true},
		"another run":         {manifest(true, func(m *wire.Manifest) { m.Run = "letters" }), copying.WrongRun, false, true},
		"another layout":      {manifest(true, func(m *wire.Manifest) { m.Layout[0]++ }), copying.WrongLayout, false, true},
		"other slices":        {manifest(true, func(m *wire.Manifest) { m.SliceLen++ }), copying.WrongLayout, false, true},
		"more values":         {manifest(true, func(m *wire.Manifest) { m.Values++ }), copying.WrongLayout, false, true},
		"an earlier life":     {manifest(true, func(m *wire.Manifest) { m.Incarnation = 0 }), copying.Stale, false, true},
		"a state long passed": {manifest(true, func(m *wire.Manifest) { m.Steps = 80 }), copying.Stale, false, true},
		"altered hashes":      {hashes(func(_ transport.Identity, m *wire.StateHashes) { m.Hashes[0]++ }), copying.Forged, true, false},
		"hashes of another manifest": {hashes(func(by transport.Identity, m *wire.StateHashes) {
			m.Signature, _ = by.Sign(m.Statement(nil, [32]byte{1}, 0))
		}), copying.Forged, true, false},
		"one hash too few": {hashes(func(_ transport.Identity, m *wire.StateHashes) { m.Hashes = m.Hashes[wire.HashSize:] }), "", true, false},
		"another value":    {slice(func(payload []byte) { payload[8] ^= 1 }), copying.WrongSlice, true, false},
		"not a number":     {slice(func(payload []byte) { copy(payload, "\x00\x00\xc0\x7f") }), copying.WrongSlice, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, asked := newRoom(t), map[wire.Type]int{}
				r.spoil = func(by transport.Identity, typ wire.Type, payload []byte) []byte {
					asked[typ]++
					return c.spoil(by, typ, payload)
				}
				id := r.donate(odd, 1, 0, 0)
				r.donate("honest", 2, 0, 0)
				copied, err := r.copy(t.Context())
				if err != nil || copied.Stats.Servers != 1 || slices.ContainsFunc(copied.Values, func(v float32) bool { return v != 2 }) || asked[wire.TypeManifest] != 1 {
					t.Fatalf("asked %v: %+v, %v", asked, copied, err)
				}
				if c.signed == (asked[wire.TypeStateHashes] > 0) {
					t.Errorf("asked for slices: %v", asked)
				}
				if (len(r.lied) == 1 && r.lied[0] == id) != c.lied || copied.Stats.Faulty != len(r.lied) {
					t.Errorf("%v lied; %+v", r.lied, copied.Stats)
				}
				why := r.why
				for _, e := range r.logged.All() {
					why = errors.Join(why, e.Context[1].Interface.(error))
				}
				if fault, _ := errors.AsType[*copying.ServerError](why); why == nil || c.want != "" && (fault == nil || fault.Fault != c.want || fault.Server != id) {
					t.Errorf("found %v, want %q", why, c.want)
				}
			})
		})
	}
}

// TestADonorLostMidway costs only the slices that were on their way: what was verified is kept,
// and the rest is asked of the other, or of itself once it answers again.
func TestADonorLostMidway(t *testing.T) {
	for name, c := range map[string]struct {
		lose  func(r *room, id transport.PeerID)
		alone bool
	}{
		"it crashes":      {func(r *room, id transport.PeerID) { r.network.Crash(id) }, false},
		"it leaves":       {func(r *room, _ transport.PeerID) { close(r.leaving) }, false},
		"it stalls":       {func(r *room, id transport.PeerID) { r.network.StallAfter(id, r.to, 0) }, false},
		"its link breaks": {func(r *room, id transport.PeerID) { r.network.CutAfter(id, r.to, 0) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, given := newRoom(t), 0
				r.busy, r.network = false, memnet.New(memnet.Config{Link: memnet.Link{Delay: 5 * time.Millisecond, Bandwidth: 4 << 10}})
				var id transport.PeerID
				r.spoil = func(_ transport.Identity, typ wire.Type, payload []byte) []byte {
					if typ == wire.TypeStateSlice {
						if given++; given == 5 {
							c.lose(r, id)
						}
					}
					return payload
				}
				if id = r.donate(odd, 1, 0, 0); !c.alone {
					r.donate("another", 2, 0, 0)
				}
				began := time.Now()
				copied, err := r.copy(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				const all = (values + sliceLen - 1) / sliceLen
				const window = all / (2 * copying.Donors)
				s, took := copied.Stats, time.Since(began)
				if s.Faulty != 0 || len(r.lied) != 0 || s.Slices != all || int(s.Retransmitted) > window+1 || took > stall+time.Second {
					t.Errorf("%+v after %s, at most %d slices twice", s, took, window+1)
				}
				kept := slices.Index(copied.Values, 1) >= 0
				if want := map[bool]int{true: 1, false: 2}[c.alone]; s.Servers != want || !kept || c.alone && given <= all-5 {
					t.Errorf("%d donors, of which one gave %d slices; kept: %v", s.Servers, given, kept)
				}
				r.network.Release(id, r.to)
			})
		})
	}
}

// TestSlowDonorsTogetherKeepNobodyWaiting: though a joiner copies from as many as it asks at
// once, and all of them take their time.
func TestSlowDonorsTogetherKeepNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(12) { // whom one asks first follows from who is there
			r := newRoom(t)
			r.network = memnet.New(memnet.Config{Seed: seed, Link: memnet.Link{Delay: time.Millisecond}})
			r.spoil = slice(func([]byte) { time.Sleep(4 * time.Second) })
			for _, name := range []string{odd + "-1", odd + "-2", odd + "-3"} {
				r.donate(name, 1, 0, 0)
			}
			r.donate("fast", 2, 0, 0)
			began := time.Now()
			copied, err := r.copy(t.Context())
			if took := time.Since(began); err != nil || took > 5*time.Second || !slices.Contains(copied.Values, 2) {
				t.Errorf("%+v after %s, %v", copied, took, err)
			}
		}
	})
}
