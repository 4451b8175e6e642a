package control

import (
	"encoding/hex"
	"errors"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// memberSample is what testdata/wire/member.hex says at a moment.
func memberSample(now time.Time) Member {
	m := Member{ID: "12D3KooW", Role: topology.Active, State: Training, Steps: 1040, Unreachable: true, Digest: digestSample()}
	m.Name, m.Version, m.Received, m.Exchanged = "build-1", "v1.2.0", now.Add(-900*time.Millisecond), now.Add(-1500*time.Millisecond)
	return m
}

// vectorPayload is the payload of the vector, whose frame package wire checks.
func vectorPayload(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../testdata/wire/member.hex")
	if err != nil {
		t.Fatal(err)
	}
	frame, err := hex.DecodeString(regexp.MustCompile(`#.*|\s`).ReplaceAllString(string(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return frame[wire.HeaderSize:]
}

// TestAMemberSaysWhatItHolds: the rows that a member gives come behind the harm that it tells of, if any, and a release
// that knows no rows passes them over.
func TestAMemberSaysWhatItHolds(t *testing.T) {
	now := time.Now()
	for _, harm := range []Harm{{}, {Partner: "12D3KooX", Harm: 2, Trust: 0.25}} {
		m := memberSample(now)
		m.State, m.Harm = Idle, harm
		before := m.Encoded(now)
		for what, rows := range map[string]uint64{"looks on": 0, "holds": 60000} {
			m.Rows = rows
			got, err := memberOf(m.Encoded(now), now)
			if err != nil || got.Rows != rows || got.Does() != what || got.Harm.Harm != harm.Harm {
				t.Errorf("%+v, %v", got, err)
			}
		}
		if got, err := memberOf(m.Encoded(now)[:len(before)], now); err != nil || got.Rows != 0 || got.Harm.Harm != harm.Harm {
			t.Errorf("without its end: %+v, %v", got, err)
		}
	}
	for what, m := range map[string]Member{"trains": {State: Training}, "trains, holds": {State: Joining, Rows: 1}} {
		if m.Does() != what {
			t.Errorf("%q, want %q", m.Does(), what)
		}
	}
}

// TestAMemberSaysWhereItIs: the place comes behind the rows. Of a release that knows no places, and of a member whose place
// cannot be, there is none; what a later release adds is passed over.
func TestAMemberSaysWhereItIs(t *testing.T) {
	now := time.Now()
	m := memberSample(now)
	m.Rows, m.Stage, m.Place = 7, 2, topology.Place{Site: "Zürich", Uplink: topology.UplinkOf(2.5e6)}
	told := m.Encoded(now)
	at := len(told) - len(m.Place.Site) - 3 // of the length of the site, which the site, the uplink and the stage follow
	for _, c := range []struct {
		what string
		told []byte
		want topology.Place
	}{
		{"all", told, m.Place},
		{"more", append(slices.Clone(told), 1, 2), m.Place},
		{"no place", told[:at], topology.Place{}},
		{"no stage", told[:len(told)-1], m.Place},
		{"a part", told[:len(told)-2], topology.Place{}},
		{"an uplink that cannot be", append(slices.Clone(told[:len(told)-2]), 255), topology.Place{}},
		{"a name that steers terminals", append(slices.Clone(told[:at]), 1, 27, 3), topology.Place{}},
	} {
		got, err := memberOf(c.told, now)
		if staged := c.what == "all" || c.what == "more"; err != nil || got.Place != c.want || got.Rows != 7 || (got.Stage == 2) != staged {
			t.Errorf("%s: %+v, %d rows, stage %d, %v", c.what, got.Place, got.Rows, got.Stage, err)
		}
	}
}

// What is told of a member is the vector's; it survives its encoding, partners aside. What a later
// release adds is passed over, and a cut in what this one knows is refused.
func TestMembersSurviveTheirEncoding(t *testing.T) {
	now := time.Now()
	want, text := memberSample(now), vectorPayload(t)
	if is := want.Encoded(now); string(is) != string(text) {
		t.Errorf("a member is\n% x, want\n% x", is, text)
	}
	want.Partners = nil
	for _, later := range []string{"", "\x01\x02\x03"} {
		if got, err := memberOf([]byte(string(text)+later), now); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("with % x more: %+v, %v, want %+v", later, got, err, want)
		}
	}
	for cut := range len(text) {
		if got, err := memberOf(text[:cut], now); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("cut to %d of %d bytes: %+v, %v", cut, len(text), got, err)
		}
	}
	const known = 41 // in the digest, which comes last: tells whether the loss is, 0 or 1
	text[len(text)-len(digestBytes)/2+known] = 2
	if got, err := memberOf(text, now); !errors.Is(err, wire.ErrMessage) {
		t.Errorf("with a digest that cannot be: %+v, %v", got, err)
	}
}

// Of a member that has told nothing there is no digest, and what is not known stays so.
func TestSilentMembersAreTold(t *testing.T) {
	now := time.Now()
	silent := Member{ID: "a", State: 77, Steps: 3, Leaving: true, Digest: Digest{Loss: math.NaN()}}
	got, err := memberOf(silent.Encoded(now), now)
	if err != nil || !math.IsNaN(got.Loss) || !got.Received.IsZero() || !got.Exchanged.IsZero() {
		t.Errorf("told as %+v, %v", got, err)
	}
	got.Loss, silent.Loss = 0, 0
	if !reflect.DeepEqual(got, silent) {
		t.Errorf("told as %+v, want %+v", got, silent)
	}
	silent.Received, silent.Exchanged = now.Add(time.Hour), now.Add(-2*longest) // no clock runs backwards, and none so long
	if got, err := memberOf(silent.Encoded(now), now); err != nil || !got.Received.Equal(now) || !got.Exchanged.Equal(now.Add(-longest)) {
		t.Errorf("times of %+v, %v", got, err)
	}
}

// Names steer no terminal and have their bounds, in both messages that tell them; the largest member leaves
// room for more.
func TestNamesAreBounded(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", MaxName+1), "\x1b[2J", "two\nlines", "\xff"} {
		called := Digest{Name: name}
		if got, err := DigestOf(wire.Control{Kind: wire.ControlIntroduction, Body: called.Body(wire.ControlIntroduction)}, time.Time{}); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("introduced as %q: %+v, %v", name, got, err)
		}
		if got, err := memberOf(Member{ID: "a", Digest: called}.Encoded(time.Time{}), time.Time{}); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("told of as %q: %+v, %v", name, got, err)
		}
	}
	largest := Member{ID: "i", Role: topology.Undecided, Digest: Digest{
		Name: strings.Repeat("n", MaxName), Version: strings.Repeat("v", MaxVersion), Received: time.Unix(1, 0), Partners: make([]Met, wire.MaxPartners),
	}}
	if n := len(largest.Encoded(time.Unix(2, 0))) + wire.MaxAuthor + maxRole; n > wire.MaxMember/2+128 {
		t.Errorf("the largest member has %d bytes of %d", n, wire.MaxMember)
	}
}

// FuzzMembers reads any bytes as what is told of a member. What is accepted is told again, and read
// as the same, but for a digest that nobody knows when it was heard.
func FuzzMembers(f *testing.F) {
	now := time.Now()
	f.Add(memberSample(now).Encoded(now))
	f.Add(Member{ID: "a", Digest: Digest{Loss: math.NaN()}}.Encoded(now))
	f.Add(Member{ID: "a", Rows: 1, Place: topology.Place{Site: "b", Uplink: 3}, Digest: Digest{Loss: math.NaN()}}.Encoded(now))
	f.Fuzz(func(t *testing.T, told []byte) {
		m, err := memberOf(told, now)
		if err != nil {
			if !errors.Is(err, wire.ErrMessage) {
				t.Fatalf("undocumented error %v", err)
			}
			return
		}
		again, err := memberOf(m.Encoded(now), now)
		if err != nil || m.Partners != nil {
			t.Fatalf("%+v is accepted, and told again refused: %v", m, err)
		}
		if m.Received.IsZero() || math.IsNaN(m.Loss) {
			return
		}
		if !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v is accepted, and told again as %+v", m, again)
		}
	})
}
