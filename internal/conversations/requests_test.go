package conversations

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestWhatIsNoRequestIsRefused: for its reason, and before the machine hears of it.
func TestWhatIsNoRequestIsRefused(t *testing.T) {
	changed := func(r *room, h *hand, change func(*wire.Propose)) []byte {
		proposal := r.proposal()
		change(&proposal)
		return h.pack(proposal)
	}
	for _, c := range []struct {
		name  string
		frame func(*room, *hand) []byte
		want  wire.Reason
	}{
		{"noise", func(*room, *hand) []byte { return make([]byte, 100) }, wire.ReasonProtocol},
		{"a newer version", func(r *room, h *hand) []byte { f := h.pack(r.proposal()); f[2]++; return f }, wire.ReasonVersion},
		{"a flipped bit", func(r *room, h *hand) []byte { f := h.pack(r.proposal()); f[40] ^= 1; return f }, wire.ReasonProtocol},
		{"a slice with no proposal", func(_ *room, h *hand) []byte { return h.code(1) }, wire.ReasonProtocol},
		{"another layout", func(r *room, h *hand) []byte { return changed(r, h, func(p *wire.Propose) { p.Layout[0]++ }) }, wire.ReasonLayout},
		{"other slices", func(r *room, h *hand) []byte { return changed(r, h, func(p *wire.Propose) { p.SliceLen++ }) }, wire.ReasonLayout},
		{"another run", func(r *room, h *hand) []byte { return changed(r, h, func(p *wire.Propose) { p.Run = "letters" }) }, wire.ReasonRun},
		{"unknown codecs", func(r *room, h *hand) []byte {
			return changed(r, h, func(p *wire.Propose) { p.Codecs = []uint8{250, 251} })
		}, wire.ReasonCodec},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{})
				h := r.byHand(1)
				h.say(c.frame(r, h))
				var refuse wire.Refuse
				if err := refuse.Decode(h.hears(wire.TypeRefuse)); err != nil || refuse.Reason != c.want {
					t.Errorf("refused for %v, %v; want %v", refuse.Reason, err, c.want)
				}
				h.Close()
				pass(time.Second)
				if declined := r.b.Counters.Counts().Declined; len(declined) != 1 {
					t.Errorf("b counts %v", declined)
				}
				r.b.loop.hears(t, "b")
				r.idle("a refusal")
			})
		})
	}
}

// TestAStreamWithoutARequestIsNothing: whether it ends at once or nobody says anything on it.
func TestAStreamWithoutARequestIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.byHand(1).Close()
		r.byHand(2).Reset()
		silent := r.byHand(3)
		pass(2 * stall)
		if _, _, err := silent.frames.Next(); err == nil {
			t.Error("a stream on which nobody says anything is answered")
		}
		silent.Reset()
		r.b.loop.hears(t, "b")
		if counts := r.b.Counters.Counts(); len(counts.Declined)+len(counts.Dropped) != 0 {
			t.Errorf("b counts %v and %v", counts.Declined, counts.Dropped)
		}
		r.idle("nothing")
	})
}

// TestATransferThatNobodyTakesIsRefused: by a machine that averages models, and by one that is in
// another round.
func TestATransferThatNobodyTakesIsRefused(t *testing.T) {
	for _, takes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{traits: collective.Traits{Gradients: true}})
			r.b.Host.Traits.Gradients, r.b.loop.refuses = takes, averaging.Round
			if err := r.a.Host.Replica.PutRange(make([]float32, values), 0, values, 1); err != nil {
				t.Fatal(err)
			}
			given := r.gives(1)
			pass(time.Second)
			r.a.loop.hears(t, "a", averaging.Refused)
			if got := r.a.loop.last(); got.Reason != averaging.Round || got.Transfer != given {
				t.Errorf("a hears %+v", got)
			}
			if asked := len(r.b.loop.kinds()) > 0; asked != takes {
				t.Errorf("the machine of b hears %v", r.b.loop.heard)
			}
			r.idle("a refusal")
		})
	}
}

// part is the first piece of so many of a transfer.
func (h *hand) part(slice tensor.Vector, pieces uint32) []byte {
	h.t.Helper()
	frame := wire.AppendPartInfo(wire.Reserve(nil), wire.PartInfo{Weight: 1, Codec: uint8(coding.Raw), Pieces: pieces})
	frame = tensor.AppendBytes(frame, slice)
	if err := wire.Seal(frame, wire.Header{Type: wire.TypePart, Exchange: h.exchange}); err != nil {
		h.t.Fatal(err)
	}
	return frame
}

// TestTransfersAreExamined: what cannot be taken is refused for its reason, and who sends what no
// honest peer does is kept away; who only breaks off is not.
func TestTransfersAreExamined(t *testing.T) {
	bad, whole := make(tensor.Vector, sliceLen), make(tensor.Vector, sliceLen)
	bad[0] = float32(math.NaN())
	for _, c := range []struct {
		name   string
		change func(*wire.Offer)
		part   func(*hand) []byte
		reason wire.Reason // 0: it is taken, and not finished
		away   bool
	}{
		{"another layout", func(o *wire.Offer) { o.Layout[0]++ }, nil, wire.ReasonLayout, false},
		{"another cut", func(o *wire.Offer) { o.Cut++ }, nil, wire.ReasonLayout, false},
		{"another run", func(o *wire.Offer) { o.Run = "other" }, nil, wire.ReasonRun, false},
		{"a lattice", func(o *wire.Offer) { o.Codecs = []uint8{uint8(coding.Lattice6to4)} }, nil, wire.ReasonCodec, false},
		{"parameters to be added", func(o *wire.Offer) { o.From, o.Into = wire.BufferParameters, wire.BufferParameters }, nil, wire.ReasonProtocol, true},
		{"into the gradient", func(o *wire.Offer) { o.Into = wire.BufferGradient }, nil, wire.ReasonProtocol, true},
		{"NaN", nil, func(h *hand) []byte { return h.part(bad, 1) }, wire.ReasonProtocol, true},
		{"too short", nil, func(h *hand) []byte { return h.part(whole[1:], 1) }, wire.ReasonProtocol, true},
		{"too many pieces", nil, func(h *hand) []byte { return h.part(whole, 1<<31) }, wire.ReasonProtocol, true},
		{"unfinished", nil, func(h *hand) []byte { return h.part(whole, 1) }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{traits: collective.Traits{Gradients: true}})
				offer := wire.Offer{Opening: r.proposal().Opening, From: wire.BufferGradient, Into: wire.BufferSum, Add: true, Parts: 1, Round: 1}
				h := r.byHand(1)
				if c.change != nil {
					c.change(&offer)
				}
				h.say(h.pack(offer))
				if c.part != nil {
					h.hears(wire.TypeAccept)
					h.say(c.part(h))
				}
				h.CloseWrite()
				if c.reason != 0 {
					var refuse wire.Refuse
					if err := refuse.Decode(h.hears(wire.TypeRefuse)); err != nil || refuse.Reason != c.reason {
						t.Errorf("refused for %v, %v; want %v", refuse.Reason, err, c.reason)
					}
				}
				pass(time.Second)
				heard := r.b.loop.kinds()
				if got := slices.Contains(heard, averaging.Quarantined); got != c.away || slices.Contains(heard, averaging.Finished) {
					t.Errorf("the machine of b hears %v", heard)
				}
				if failed := slices.Contains(heard, averaging.Failed); failed != (c.part != nil) {
					t.Errorf("the machine of b hears %v", heard)
				}
				h.Reset()
				r.idle(c.name)
			})
		})
	}
}

// TestWhatCannotBeSentIsAnOwnFault: the machine and the trainer hear of it, the partner does not.
func TestWhatCannotBeSentIsAnOwnFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.a.Host.Traits.Gradients = true // though its replica has no room for any
		r.gives(1)
		pass(time.Second)
		r.a.loop.hears(t, "a", averaging.Failed)
		if got := r.a.loop.last(); got.Reason != averaging.Unfit || r.a.unfit == nil {
			t.Errorf("a hears %+v, and its trainer %v", got, r.a.unfit)
		}
		r.b.loop.hears(t, "b")
		if r.a.Quarantined(r.b.at.Self()) != 0 {
			t.Error("the partner is kept away for it")
		}
	})
}

// TestARefusalForTheRoleBringsARecord: the view is corrected before the machine hears of the refusal;
// a record that is no good is against the rules.
func TestARefusalForTheRoleBringsARecord(t *testing.T) {
	for record, want := range map[string][]averaging.EventKind{
		"what b is": {averaging.Refused},
		forged:      {averaging.Quarantined, averaging.Failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{})
			r.b.loop.refuses, r.b.record = averaging.WrongRole, []byte(record)
			r.a.propose(r.b, 1)
			pass(time.Second)
			r.a.loop.hears(t, "a", want...)
			if got := r.a.loop.corrections; (record == forged) != (len(got) == 0) || len(got) > 0 && got[0] != 0 {
				t.Errorf("the view is corrected after %v events", got)
			}
		})
	}
}

// TestWhoIsKeptAwayByOthersIsNotServed: an offence that another room has found counts here too.
func TestWhoIsKeptAwayByOthersIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.b.Add(r.a.at.Self(), wire.ErrMessage)
		r.b.loop.hears(t, "b", averaging.Quarantined)
		got := r.b.loop.last()
		if got.Peer != r.a.at.Self() || got.After != r.b.Quarantined(r.a.at.Self()) || len(r.b.loop.ends) != 1 {
			t.Errorf("b hears %v, and hooks hear %v", got, r.b.loop.ends)
		}
		r.a.propose(r.b, 1)
		pass(time.Second)
		if got := r.a.loop.last(); got.Kind != averaging.Refused || got.Reason != averaging.Quarantine {
			t.Errorf("a hears %v", got)
		}
	})
}
