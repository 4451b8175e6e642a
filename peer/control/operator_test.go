package control

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/admit"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim/rate"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const run = "digits"

// at is the transport of a name on a network.
func at(t *testing.T, n *memnet.Network, name string) *memnet.Transport {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// member is one that keeps what it is told, and answers with it or as a test wants.
type member struct {
	held     orderlog.Orders
	messages int
	answer   func(*framed.Stream, [][]byte) // nil: all that is held
	tells    [][]byte
}

// obey has a member serve a run, whose key it may have.
func obey(t *testing.T, tr transport.Transport, key []byte) *member {
	t.Helper()
	guard, err := admit.New(admit.Config{Run: run, Key: key, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	tr = guard.Over(tr)
	m := new(member)
	for protocol, serve := range map[transport.Protocol]func(*framed.Stream){
		transport.ProtocolControl: m.converse, transport.ProtocolMembers: func(s *framed.Stream) { orderlog.Members().Answer(s, m.tells) },
	} {
		stop, err := tr.Handle(protocol, run, func(raw transport.Stream) {
			var s framed.Stream
			s.Begin(raw, stall)
			serve(&s)
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	return m
}

func (m *member) converse(s *framed.Stream) {
	messages, _ := orderlog.Said().Receive(s)
	for _, message := range messages {
		m.messages++
		order := orderlog.Order{Bytes: message}
		if order.Decode(message) == nil && m.held.Wants(order) {
			m.held.Take(order)
		}
	}
	if m.answer != nil {
		m.answer(s, m.held.All())
	} else {
		orderlog.Said().Answer(s, m.held.All())
	}
}

// TestNumbersContinue those that the member knows, and those that an operator remembers
// though the member does not.
func TestNumbersContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host := at(t, n, "host")
		obey(t, host, nil)
		o := Operator{Transport: at(t, n, "operator"), Run: run}
		hello := Command{Kind: Announce, Settings: map[string]string{"model": "mlp"}}
		for _, c := range []struct {
			after    uint64
			commands []Command
			want     []uint64 // of all that counts
		}{
			{0, []Command{{Kind: Pause, Why: "lunch"}}, []uint64{1}},
			{0, []Command{{Kind: Resume}, hello}, []uint64{2, 3}},
			{7, []Command{{Kind: Pause, Sequence: 99}}, []uint64{3, 8}},
			{2, []Command{{Kind: SetPace, At: 9, Every: 4}, {Kind: SetPace, At: 5, Every: 3}}, []uint64{3, 8, 10}},
		} {
			o.After = c.after
			sent, err := o.Send(t.Context(), host.Self(), c.commands...)
			asked, err2 := o.Ask(t.Context(), host.Self())
			var numbers []uint64
			for _, one := range sent {
				numbers = append(numbers, one.Sequence)
			}
			if slices.Sort(numbers); errors.Join(err, err2) != nil || !slices.Equal(numbers, c.want) || !reflect.DeepEqual(sent, asked) {
				t.Errorf("after %d: %+v counts, %v, and asked %+v, %v; want numbers %v", c.after, sent, err, asked, err2, c.want)
			}
		}
	})
}

// TestCommandsThatCannotBe are refused where they are given, and reach nobody.
func TestCommandsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host := at(t, n, "host")
		m, o := obey(t, host, nil), Operator{Transport: at(t, n, "operator"), Run: run}
		for name, c := range map[string]Command{
			"no kind":                {},
			"a pause at a step":      {Kind: Pause, At: 5},
			"a long reason":          {Kind: Stop, Why: strings.Repeat("w", 201)},
			"a reason on two lines":  {Kind: Stop, Why: "a\nb"},
			"a rate below zero":      {Kind: SetSchedule, Schedule: rate.Schedule{Rate: -1}},
			"a rate that is none":    {Kind: SetSchedule, Schedule: rate.Schedule{Rate: math.NaN()}},
			"a shape that is none":   {Kind: SetSchedule, Schedule: rate.Schedule{Rate: 1, Shape: 77}},
			"a pace below zero":      {Kind: SetPace, Every: -1},
			"a setting without name": {Kind: Announce, Settings: map[string]string{"": "x"}},
			"a long setting":         {Kind: Announce, Settings: map[string]string{"x": strings.Repeat("v", 81)}},
		} {
			if _, err := o.Send(t.Context(), host.Self(), Command{Kind: Pause}, c); err == nil || m.messages != 0 {
				t.Errorf("%s: sent with %v, %d messages", name, err, m.messages)
			}
		}
	})
}

// TestWhomAnOperatorBelieves: its own signature alone, for its own run; and it is told why a
// member does not do as it says.
func TestWhomAnOperatorBelieves(t *testing.T) {
	signed := func(by transport.Identity, in string) []byte {
		m, _ := Command{Kind: Pause, Sequence: 5}.Message()
		m.Run, m.Author = in, string(by.Self())
		order, _ := orderlog.Sign(by, m)
		return order.Bytes
	}
	type answer = func(s *framed.Stream, operator, mallory transport.Identity)
	with := func(made func(operator, mallory transport.Identity) []byte) answer {
		return func(s *framed.Stream, operator, mallory transport.Identity) {
			orderlog.Said().Answer(s, [][]byte{made(operator, mallory)})
		}
	}
	for name, c := range map[string]struct {
		answer answer
		is     error
		says   string
	}{
		"another operator's": {with(func(_, m transport.Identity) []byte { return signed(m, run) }), ErrOperator, "the operator there is"},
		"another run's":      {with(func(o, _ transport.Identity) []byte { return signed(o, "letters") }), errForged, ""},
		"altered":            {with(func(o, _ transport.Identity) []byte { b := signed(o, run); b[len(b)-1] ^= 1; return b }), errForged, ""},
		"noise":              {with(func(_, _ transport.Identity) []byte { return []byte("noise") }), wire.ErrMessage, ""},
		"not taken":          {func(s *framed.Stream, _, _ transport.Identity) { s.Finish() }, nil, "has not taken all commands"},
		"obeys nobody": {func(s *framed.Stream, _, _ transport.Identity) { s.Refuse(0, wire.ReasonOperator, "nobody") },
			ErrOperator, wire.ReasonOperator.Remedy()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{})
				host, operator, mallory := at(t, n, "host"), at(t, n, "operator"), at(t, n, "mallory")
				obey(t, host, nil).answer = func(s *framed.Stream, _ [][]byte) { c.answer(s, operator, mallory) }
				_, err := Operator{Transport: operator, Run: run}.Send(t.Context(), host.Self(), Command{Kind: Pause})
				if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %v that says %q", err, c.is, c.says)
				}
			})
		})
	}
}

// TestOutsidersShowTheKey of a run that has one, and hear of another run, or of an older
// release, what to do about it.
func TestOutsidersShowTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host, key := at(t, n, "host"), []byte(strings.Repeat("k", transport.MinRunKey))
		obey(t, host, key)
		outside := at(t, n, "outside")
		for _, c := range []struct {
			run    string
			key    []byte
			remedy string // "": heard
		}{{run, key, ""}, {run, nil, "stream"}, {run, []byte(strings.Repeat("x", transport.MinRunKey)), "stream"}, {"letters", key, wire.ReasonRun.Remedy()}} {
			_, told := Operator{Transport: outside, Run: c.run, RunKey: c.key}.Send(t.Context(), host.Self(), Command{Kind: Pause})
			_, seen := Observer{Transport: outside, Run: c.run, RunKey: c.key}.Members(t.Context(), host.Self())
			for _, err := range []error{told, seen} {
				if (err == nil) != (c.remedy == "") || err != nil && !strings.Contains(err.Error(), c.remedy) {
					t.Errorf("run %q, key %q: %v, want %q", c.run, c.key, err, c.remedy)
				}
			}
		}
	})
}

// TestObserversSeeWhatIsTold, and of whom it cannot be read.
func TestObserversSeeWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		host, now := at(t, n, "host"), time.Now()
		m, o := obey(t, host, nil), Observer{Transport: at(t, n, "outside"), Run: run}
		sample := memberSample(now)
		m.tells = [][]byte{Member{ID: "a", Steps: 3, Digest: Digest{Loss: math.NaN()}}.Encoded(now), sample.Encoded(now)}
		seen, err := o.Members(t.Context(), host.Self())
		if sample.Partners = nil; err != nil || len(seen) != 2 || seen[0].ID != "a" || !reflect.DeepEqual(seen[1], sample) {
			t.Fatalf("seen %+v, %v", seen, err)
		}
		m.tells[1] = m.tells[1][:len(m.tells[1])-1]
		if _, err := o.Members(t.Context(), host.Self()); !errors.Is(err, wire.ErrMessage) || !strings.Contains(err.Error(), strconv.Quote(string(sample.ID))) {
			t.Errorf("one that is cut: %v", err)
		}
		m.tells[1] = Member{ID: "\x1b[2J", Digest: Digest{Loss: math.NaN()}}.Encoded(now)
		if _, err := o.Members(t.Context(), host.Self()); err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("one that is to clear a terminal: %q", err)
		}
	})
}

// TestConfigFaults are all told of at once.
func TestConfigFaults(t *testing.T) {
	if err := (Config{Name: "na\u00efve", Digests: -1}).Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{Operator: transport.PeerID(strings.Repeat("o", wire.MaxAuthor+1)), Digests: DigestSpacing - 1, Name: "a\x1bb"}
	for _, want := range []string{"Operator has", "Digests is", "Name is"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if got := Printable("se\u202econd\x1b[2J\xff"); got != "second[2J" {
		t.Errorf("printed %q", got)
	}
	if v := Version(); len(v) > MaxVersion || Printable(v) != v {
		t.Errorf("the version is %q", v)
	}
}
