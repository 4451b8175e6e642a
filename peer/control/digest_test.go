package control

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// digestBytes is what a message says of digestSample, as testdata/wire/member.hex has it too.
const digestBytes = "0100000000000000" + "0200000000000000" + "0300000000000000" + "0400000000000000" + "0500000000000000" +
	"02" + "01" + "000000000000e03f" + "0000000000005940" + "000000000000d03f" + "02" + "0700000000000000" + "08000000" + "0900000000000000" + "0a000000"

func digestSample() Digest {
	return Digest{
		Incarnation: 1, Steps: 2, FlockSteps: 3, Exchanges: 4, Failed: 5, State: Training, Loss: 0.5, Samples: 100, ConsensusDistance: 0.25,
		Partners: []Met{{mark: 7, Exchanges: 8}, {mark: 9, Exchanges: 10}}, Received: time.Unix(5, 0),
	}
}

// digestOf reads the body of a digest.
func digestOf(body []byte, heard time.Time) (Digest, error) {
	return DigestOf(wire.Control{Kind: wire.ControlDigest, Body: body}, heard)
}

// A digest survives its encoding; cut anywhere, or with a byte too many, it is refused.
func TestDigestsSurviveTheirEncoding(t *testing.T) {
	want := digestSample()
	text := want.Body(wire.ControlDigest)
	if is := hex.EncodeToString(text); is != digestBytes {
		t.Errorf("a digest is\n%s, want\n%s", is, digestBytes)
	}
	if got, err := digestOf(text, want.Received); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	for cut := range len(text) {
		if got, err := digestOf(text[:cut], time.Time{}); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("cut to %d of %d bytes: %+v, %v", cut, len(text), got, err)
		}
	}
	if got, err := digestOf(append(text, 0), time.Time{}); !errors.Is(err, wire.ErrMessage) {
		t.Errorf("with a byte too many: %+v, %v", got, err)
	}
}

// A loss that is not known is none, and not 0; what is not finite is not said, or refused.
func TestDigestsSayWhatIsFinite(t *testing.T) {
	for _, loss := range []float64{math.NaN(), math.Inf(1)} {
		got, err := digestOf(Digest{Loss: loss, Samples: math.Inf(-1), ConsensusDistance: math.NaN()}.Body(wire.ControlDigest), time.Time{})
		if err != nil || !math.IsNaN(got.Loss) || got.Samples != 0 || got.ConsensusDistance != 0 {
			t.Errorf("loss %v: read %+v, %v", loss, got, err)
		}
	}
	const known, loss, distance = 41, 42, 58
	for name, spoil := range map[string]func(text []byte){
		"a loss that is and is not": func(text []byte) { text[known] = 0 },
		"known by halves":           func(text []byte) { text[known] = 2 },
		"an infinite loss":          func(text []byte) { copy(text[loss:], "\x00\x00\x00\x00\x00\x00\xf0\x7f") },
		"NaN distance":              func(text []byte) { copy(text[distance:], "\x00\x00\x00\x00\x00\x00\xf8\x7f") },
	} {
		text := digestSample().Body(wire.ControlDigest)
		spoil(text)
		if got, err := digestOf(text, time.Time{}); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("%s: read %+v, %v", name, got, err)
		}
	}
}

// A digest tells of no more partners than fit, and of as many as it says.
func TestDigestPartnersAreBounded(t *testing.T) {
	body := Digest{Partners: make([]Met, wire.MaxPartners+1)}.Body(wire.ControlDigest)
	if len(body) != wire.MaxDigest {
		t.Errorf("the largest digest has %d bytes, not %d", len(body), wire.MaxDigest)
	}
	at := len(body) - wire.MaxPartners*12 - 1
	for _, count := range []byte{wire.MaxPartners + 1, 255, wire.MaxPartners - 1, 0} {
		body[at] = count
		if _, err := digestOf(body, time.Time{}); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("a digest of %d partners that says %d: %v", wire.MaxPartners, count, err)
		}
	}
	body[at] = wire.MaxPartners
	if d, err := digestOf(body, time.Time{}); err != nil || len(d.Partners) != wire.MaxPartners {
		t.Errorf("%d partners: %v", len(d.Partners), err)
	}
}

// Partners have their names where these are known, and are left out elsewhere; what is kept stays.
func TestPartnersAreNamed(t *testing.T) {
	b, c := Met{Partner: "b", Exchanges: 1<<32 + 3}, Met{Partner: "c", Exchanges: 4}
	kept, err := digestOf(Digest{Partners: []Met{b, c}}.Body(wire.ControlDigest), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	before := reflect.ValueOf(kept.Partners).Pointer()
	names := map[uint64]transport.PeerID{c.Partner.Fingerprint(): "c"}
	if got := kept.Named(names).Partners; !reflect.DeepEqual(got, []Met{c}) {
		t.Errorf("named %+v", got)
	}
	if len(kept.Partners) != 2 || kept.Partners[0] != (Met{mark: b.Partner.Fingerprint(), Exchanges: 3}) || reflect.ValueOf(kept.Partners).Pointer() != before {
		t.Errorf("kept %+v", kept.Partners)
	}
	if got := (Digest{Partners: []Met{b, c}}).Named(names).Partners; !reflect.DeepEqual(got, []Met{c}) {
		t.Errorf("of this peer's own: %+v", got)
	}
}

// FuzzDigests reads any bytes as a digest. What is accepted is the one encoding of what it
// means.
func FuzzDigests(f *testing.F) {
	f.Add(digestSample().Body(wire.ControlDigest))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := digestOf(text, time.Time{})
		if err != nil {
			if !errors.Is(err, wire.ErrMessage) {
				t.Fatalf("undocumented error %v", err)
			}
			return
		}
		if again := got.Body(wire.ControlDigest); !bytes.Equal(again, text) {
			t.Fatalf("% x is accepted as %+v, which is % x", text, got, again)
		}
	})
}
