package control

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// introductionBytes is what an introduction says of introductionSample: incarnation, name, version,
// and the harm of harmBytes, with which what is told of a member ends too.
const (
	introductionBytes = "0100000000000000" + "07" + "6275696c642d31" + "06" + "76312e322e30" + harmBytes
	harmBytes         = "0700000000000000" + "0000c03f" + "0000003e"
)

func introductionSample() Digest {
	return Digest{Incarnation: 1, Name: "build-1", Version: "v1.2.0", Harm: Harm{Harm: 1.5, Trust: 0.125, mark: 7}}
}

func introductionOf(body []byte) (Digest, error) {
	return DigestOf(wire.Control{Kind: wire.ControlIntroduction, Body: body}, time.Time{})
}

// A harm survives its encoding in an introduction and in what is told of a member. Where there is none
// nothing is said, as by older releases; what a later release says after it, or too little, is
// passed over.
func TestHarmsSurviveTheirEncoding(t *testing.T) {
	want := introductionSample()
	text := want.Body(wire.ControlIntroduction)
	if is := hex.EncodeToString(text); is != introductionBytes {
		t.Errorf("an introduction is\n%s, want\n%s", is, introductionBytes)
	}
	member := Member{ID: "a", Digest: want}.Encoded(time.Time{})
	if !strings.HasSuffix(hex.EncodeToString(member), "0000"+harmBytes) {
		t.Errorf("a member is % x", member)
	}
	read := map[string]func(more string, less int) (Harm, error){
		"introduction": func(more string, less int) (Harm, error) {
			d, err := introductionOf([]byte(string(text[:len(text)-less]) + more))
			if err == nil && (d.Name != "build-1" || d.Version != "v1.2.0") {
				t.Errorf("read %+v", d)
			}
			return d.Harm, err
		},
		"member": func(more string, less int) (Harm, error) {
			m, err := memberOf([]byte(string(member[:len(member)-less])+more), time.Time{})
			return m.Harm, err
		},
	}
	for what, read := range read {
		for _, more := range []string{"", "\x01\x02\x03"} {
			if got, err := read(more, 0); err != nil || got != want.Harm {
				t.Errorf("%s with % x more: %+v, %v", what, more, got, err)
			}
		}
		for less := 1; less <= harmSize; less++ {
			if got, err := read("", less); err != nil || got != (Harm{}) {
				t.Errorf("%s without %d bytes of its harm: %+v, %v", what, less, got, err)
			}
		}
		for name, harm := range map[string]string{
			"NaN harm": "0000c07f" + "0000003e", "infinite harm": "000080ff" + "0000003e",
			"NaN trust": "0000c03f" + "0000c07f", "more than trust": "0000c03f" + "0100803f", "less than none": "0000c03f" + "000000bf",
		} {
			bytes, err := hex.DecodeString("0700000000000000" + harm)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := read(string(bytes), harmSize); !errors.Is(err, wire.ErrMessage) {
				t.Errorf("%s, %s: %+v, %v", what, name, got, err)
			}
		}
		if got, err := read(strings.Repeat("\x00", harmSize), harmSize); err != nil || got != (Harm{}) {
			t.Errorf("%s: zeros are %+v, %v", what, got, err)
		}
	}
}

// What is said of a harm is finite, and none is said of a partner that has no name here.
func TestHarmsAreSaidInBounds(t *testing.T) {
	for _, harm := range []float64{math.NaN(), math.Inf(1), -math.MaxFloat64} {
		d := Digest{Harm: Harm{Partner: "b", Harm: harm}}
		got, err := introductionOf(d.Body(wire.ControlIntroduction))
		if err != nil || math.IsInf(got.Harm.Harm, 0) || math.IsNaN(got.Harm.Harm) {
			t.Errorf("harm %g is read as %+v, %v", harm, got.Harm, err)
		}
	}
	b := transport.PeerID("b")
	got, err := introductionOf(Digest{Harm: Harm{Partner: b, Harm: 1.5, Trust: 0.25}}.Body(wire.ControlIntroduction))
	if err != nil {
		t.Fatal(err)
	}
	want := Harm{Partner: b, Harm: 1.5, Trust: 0.25}
	if named := got.Named(map[uint64]transport.PeerID{b.Fingerprint(): b}).Harm; named != want {
		t.Errorf("named %+v, want %+v", named, want)
	}
	if named := got.Named(map[uint64]transport.PeerID{1: "c"}).Harm; named != (Harm{}) {
		t.Errorf("without a name %+v", named)
	}
}

// FuzzIntroductions reads any bytes as an introduction. What is accepted is told again, and read as
// the same.
func FuzzIntroductions(f *testing.F) {
	f.Add(introductionSample().Body(wire.ControlIntroduction))
	f.Add(Digest{Name: "n"}.Body(wire.ControlIntroduction))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := introductionOf(text)
		if err != nil {
			if !errors.Is(err, wire.ErrMessage) {
				t.Fatalf("undocumented error %v", err)
			}
			return
		}
		if again, err := introductionOf(got.Body(wire.ControlIntroduction)); err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v is accepted, and told again as %+v, %v", got, again, err)
		}
	})
}

// Alarms survive their encoding, behind a harm and rows or without; where there are none, nothing is said of them.
func TestAlarmsSurviveTheirEncoding(t *testing.T) {
	for _, harm := range []Harm{{}, introductionSample().Harm} {
		for _, rows := range []uint64{0, 9} {
			for _, alarms := range []stats.AlarmSet{0, 5, 255} {
				want := Digest{Incarnation: 1, Harm: harm, Alarms: alarms}
				d, err := introductionOf(want.Body(wire.ControlIntroduction))
				if err != nil || d.Harm != harm || d.Alarms != alarms {
					t.Errorf("an introduction with %+v, alarms %b: %+v, %v", harm, alarms, d, err)
				}
				encoded := Member{ID: "a", Rows: rows, Digest: want}.Encoded(time.Time{})
				for _, more := range []string{"", "later"} {
					m, err := memberOf([]byte(string(encoded)+more), time.Time{})
					if last := alarms > 0 || more == ""; err != nil || last && (m.Harm != harm || m.Rows != rows || m.Alarms != alarms) {
						t.Errorf("a member with %+v, %d rows, alarms %b and %q behind: %+v, %v", harm, rows, alarms, more, m, err)
					}
				}
				if m, _ := memberOf(encoded[:len(encoded)-1], time.Time{}); alarms > 0 && (m.Harm != harm || m.Rows != rows || m.Alarms != 0) {
					t.Errorf("a member cut short: %+v", m)
				}
			}
		}
	}
}
