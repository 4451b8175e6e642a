package control

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

func samples() []Command {
	return []Command{
		{Kind: Announce, Layout: [32]byte{1, 2}, Settings: map[string]string{"dataset": "glyphs", "model": ""}},
		{Kind: Pause, Why: "lunch"}, {Kind: Resume, Why: "naïve"}, {Kind: Stop, Why: "enough"},
		{Kind: SetSchedule, At: 5, Schedule: rate.Schedule{Rate: 0.1, Warmup: 0.05, Factor: 0.5, Shape: rate.Stepped, At: []float64{0.5, 0.75}}},
		{Kind: SetPace, At: 6, Every: 7}, {Kind: SetWork, Steps: 1, StepsPerPeer: 2},
		{Kind: SetMembers, Why: "new disks", Changes: []Change{{Peer: "a", Do: Drain, Since: 2}, {Peer: "b", Do: Expel, Since: 3}, {Peer: "a", Do: Move, Site: "Oslo", Since: 4}}},
		{Kind: SetDuties, Changes: []Change{{Peer: "a", Do: Rest, Since: 2}, {Peer: "b", Do: Train, Since: 3}, {Peer: "a", Do: Weigh, Weight: 0.5, Since: 4}}},
	}
}

// A command survives its encoding; cut anywhere, or with a byte too many, it is refused.
func TestCommandsSurviveTheirEncoding(t *testing.T) {
	for _, want := range samples() {
		want.Sequence = 3
		m, err := want.Message()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := CommandOf(m); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, %v, want %+v", got, err, want)
		}
		whole := m.Body
		for cut := range len(whole) {
			m.Body = whole[:cut]
			if got, err := CommandOf(m); !errors.Is(err, wire.ErrMessage) {
				t.Errorf("%v cut to %d of %d bytes: %+v, %v", want.Kind, cut, len(whole), got, err)
			}
		}
		m.Body = append(whole, 0)
		if got, err := CommandOf(m); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("%v with a byte too many: %+v, %v", want.Kind, got, err)
		}
	}
}

// What a release has signed, every later one can read: these bytes are wire format.
func TestBytesOfCommands(t *testing.T) {
	for want, c := range map[string]Command{
		string(make([]byte, 32)) + "\x02\adataset\x06glyphs\x05model\x00": {Kind: Announce, Settings: map[string]string{"dataset": "glyphs", "model": ""}},
		"\x01\x05lunch":  {Kind: Pause, Why: "lunch"},
		"\x00\x06naïve":  {Kind: Resume, Why: "naïve"},
		"\x06enough":     {Kind: Stop, Why: "enough"},
		"\a\x00\x00\x00": {Kind: SetPace, Every: 7},
		"\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00": {Kind: SetWork, Steps: 1, StepsPerPeer: 2},
		"\x9a\x99\x99\x99\x99\x99\xb9?\x9a\x99\x99\x99\x99\x99\xa9?\x00\x00\x00\x00\x00\x00\xe0?\x02\x02\x00\x00\x00\x00\x00\x00\xe0?\x00\x00\x00\x00\x00\x00\xe8?": {
			Kind: SetSchedule, Schedule: rate.Schedule{Rate: 0.1, Warmup: 0.05, Factor: 0.5, Shape: 2, At: []float64{0.5, 0.75}},
		},
		"\x04away\x02\x02ab\x01\x02\x00\x00\x00\x00\x00\x00\x00\x01c\x03\x03\x00\x00\x00\x00\x00\x00\x00": {
			Kind: SetMembers, Why: "away", Changes: []Change{{Peer: "ab", Do: Drain, Since: 2}, {Peer: "c", Do: Expel, Since: 3}},
		},
		"\x00\x02\x01c\x06\x02\x00\x00\x00\x00\x00\x00\x00\x01c\x07\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xe0?": {
			Kind: SetDuties, Changes: []Change{{Peer: "c", Do: Rest, Since: 2}, {Peer: "c", Do: Weigh, Weight: 0.5, Since: 3}},
		},
	} {
		if got := c.body(); string(got) != want {
			t.Errorf("%v is %q, want %q", c.Kind, got, want)
		}
	}
}

// TestNoMessageSaysAFloor: it would be lost, as older releases know of none.
func TestNoMessageSaysAFloor(t *testing.T) {
	_, err := Command{Kind: SetSchedule, Schedule: rate.Schedule{Rate: 1, Floor: 0.1}}.Message()
	if err == nil || !strings.Contains(err.Error(), "floor of 0.1") {
		t.Error(err)
	}
}

func TestCommandsOutOfBounds(t *testing.T) {
	many := make(map[string]string)
	for i := range maxSettings + 1 {
		many[fmt.Sprintf("%02d", i)] = ""
	}
	beyond := int64(1) << 31 // below zero where an int is shorter
	for name, c := range map[string]Command{
		"setting without a name": {Kind: Announce, Settings: map[string]string{"": "v"}},
		"many settings":          {Kind: Announce, Settings: many},
		"long name":              {Kind: Announce, Settings: map[string]string{strings.Repeat("n", maxSettingName+1): ""}},
		"long value":             {Kind: Announce, Settings: map[string]string{"a": strings.Repeat("v", maxSettingValue+1)}},
		"long reason":            {Kind: Pause, Why: strings.Repeat("w", maxWhy+1)},
		"reason with an escape":  {Kind: Stop, Why: "a\x1b[2J"},
		"rate NaN":               {Kind: SetSchedule, Schedule: rate.Schedule{Rate: math.NaN()}},
		"infinite milestone":     {Kind: SetSchedule, Schedule: rate.Schedule{At: []float64{math.Inf(1)}}},
		"many milestones":        {Kind: SetSchedule, Schedule: rate.Schedule{At: make([]float64, maxMilestones+1)}},
		"pace beyond 31 bits":    {Kind: SetPace, Every: int(beyond)},
		"pace below zero":        {Kind: SetPace, Every: -1},
		"change of nobody":       {Kind: SetMembers, Changes: []Change{{Do: Drain}}},
		"no change":              {Kind: SetMembers, Changes: []Change{{Peer: "a"}}},
		"unknown change":         {Kind: SetMembers, Changes: []Change{{Peer: "a", Do: Move + 1}}},
		"site with an escape":    {Kind: SetMembers, Changes: []Change{{Peer: "a", Do: Move, Site: "\x1b[2J"}}},
		"a duty of members":      {Kind: SetMembers, Changes: []Change{{Peer: "a", Do: Rest}}},
		"leaving as a duty":      {Kind: SetDuties, Changes: []Change{{Peer: "a", Do: Drain}}},
		"unknown duty":           {Kind: SetDuties, Changes: []Change{{Peer: "a", Do: Weigh + 1}}},
		"no weight":              {Kind: SetDuties, Changes: []Change{{Peer: "a", Do: Weigh}}},
		"much weight":            {Kind: SetDuties, Changes: []Change{{Peer: "a", Do: Weigh, Weight: 2 * MostWeight}}},
		"many changes":           {Kind: SetMembers, Changes: make([]Change, maxChanges+1)},
	} {
		m := wire.Control{Kind: wireKinds[c.Kind], Body: c.body()}
		if got, err := CommandOf(m); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("%s: read %+v, %v", name, got, err)
		}
	}
	for name, body := range map[string]string{
		"setting twice":         "\x02\x01a\x00\x01a\x00",
		"settings out of order": "\x02\x01b\x00\x01a\x00",
	} {
		m := wire.Control{Kind: wire.ControlAnnounce, Body: append(make([]byte, 32), body...)}
		if got, err := CommandOf(m); !errors.Is(err, wire.ErrMessage) {
			t.Errorf("%s: read %+v, %v", name, got, err)
		}
	}
	largest := Command{Kind: Announce, Settings: make(map[string]string)}
	for i := range maxSettings {
		largest.Settings[fmt.Sprintf("%032d", i)] = strings.Repeat("v", maxSettingValue)
	}
	if m, err := largest.Message(); err != nil || len(m.Body) > wire.MaxControlBody {
		t.Errorf("the largest announcement has %d bytes, at most %d fit: %v", len(m.Body), wire.MaxControlBody, err)
	}
}

// FuzzCommands reads any bytes as any command. What is accepted is the one encoding of what
// it means.
func FuzzCommands(f *testing.F) {
	for _, c := range samples() {
		f.Add(uint8(wireKinds[c.Kind]), c.body())
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		c, err := CommandOf(wire.Control{Kind: wire.ControlKind(kind), Body: body})
		if err == nil && !bytes.Equal(c.body(), body) {
			t.Fatalf("% x is accepted as %+v, which is % x", body, c, c.body())
		}
	})
}
