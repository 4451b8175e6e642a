package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// offering is a stranger's conversation with the first peer of a flock that takes
// transfers.
func offering(t *testing.T, change func(*wire.Offer), parts ...func(frame []byte) []byte) (*peertest.Flock, wire.Type, wire.Reason) {
	t.Helper()
	flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel, Configure: meshed(constantly)})
	if err := step(t, flock.Peers[0], towards); err != nil { // it has a model and a gradient
		t.Fatal(err)
	}
	stranger, err := flock.Network.Transport("stranger")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stranger.Close() })
	enlist(t, flock.Network, stranger, peertest.Run, flock.Peers[0])
	stream, err := stranger.Open(t.Context(), flock.Peers[0].Self(), transport.ProtocolExchange, peertest.Run)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Reset()
	cut, sliceLen := flock.Peers[0].Cut()
	offer := wire.Offer{
		Opening: wire.Opening{
			Run: peertest.Run, Layout: newModel().Layout().Hash(), Incarnation: 1, SliceLen: uint32(sliceLen),
			Cut: cut, Codecs: []uint8{uint8(coding.Raw)},
		},
		From: wire.BufferGradient, Into: wire.BufferSum, Add: true, Parts: 1, Round: 1,
	}
	if change != nil {
		change(&offer)
	}
	frame, err := wire.Pack(nil, 1, offer)
	if err != nil {
		t.Fatal(err)
	}
	frames := [][]byte{frame}
	for _, part := range parts {
		frames = append(frames, part(nil))
	}
	for _, frame := range frames {
		if _, err := stream.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	_ = stream.CloseWrite()
	reader := wire.NewReader(stream, 0)
	var last wire.Type
	var refuse wire.Refuse
	for {
		header, payload, err := reader.Next()
		if err != nil {
			break
		}
		if last = header.Type; last == wire.TypeRefuse {
			if err := refuse.Decode(payload); err != nil {
				t.Fatal(err)
			}
		}
	}
	return flock, last, refuse.Reason
}

// partOf is a PART with values of a gradient.
func partOf(values tensor.Vector, pieces uint32) func([]byte) []byte {
	return func(frame []byte) []byte {
		frame = wire.AppendPartInfo(wire.Reserve(frame), wire.PartInfo{Weight: 1, Codec: uint8(coding.Raw), Pieces: pieces})
		codec, _ := coding.ByID(coding.Raw)
		head := len(frame)
		frame = append(frame, make([]byte, codec.Code.Size(len(values)))...)
		codec.Code.Encode(frame[head:], values)
		if err := wire.Seal(frame, wire.Header{Type: wire.TypePart, Exchange: 1}); err != nil {
			panic(err)
		}
		return frame
	}
}

// TestOffersAreExamined: what cannot be taken is refused for its reason, and who sends
// what no honest peer does is kept away.
func TestOffersAreExamined(t *testing.T) {
	nan := tensor.Vector{float32(math.NaN())}
	for len(nan) < 64 {
		nan = append(nan, 0)
	}
	for name, c := range map[string]struct {
		change      func(*wire.Offer)
		parts       []func([]byte) []byte
		reason      wire.Reason
		quarantined int
	}{
		"another layout":         {change: func(o *wire.Offer) { o.Layout[0]++ }, reason: wire.ReasonLayout},
		"another cut":            {change: func(o *wire.Offer) { o.Cut++ }, reason: wire.ReasonLayout},
		"another run":            {change: func(o *wire.Offer) { o.Run = "other" }, reason: wire.ReasonRun},
		"a lattice":              {change: func(o *wire.Offer) { o.Codecs = []uint8{lattice(t)} }, reason: wire.ReasonCodec},
		"another round":          {change: func(o *wire.Offer) { o.Round = 7 }, reason: wire.ReasonRound},
		"parameters to be added": {change: func(o *wire.Offer) { o.From, o.Into = 0, 0 }, reason: wire.ReasonProtocol, quarantined: 1},
		"into the gradient":      {change: func(o *wire.Offer) { o.From, o.Into = 1, 1 }, reason: wire.ReasonProtocol, quarantined: 1},
		"NaN":                    {parts: []func([]byte) []byte{partOf(nan, 1)}, reason: wire.ReasonProtocol, quarantined: 1},
		"too short":              {parts: []func([]byte) []byte{partOf(make(tensor.Vector, 63), 1)}, reason: wire.ReasonProtocol, quarantined: 1},
		"too many pieces":        {parts: []func([]byte) []byte{partOf(make(tensor.Vector, 64), 1<<31)}, reason: wire.ReasonProtocol, quarantined: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := time.Now()
				flock, last, reason := offering(t, c.change, c.parts...)
				if last != wire.TypeRefuse || reason != c.reason {
					t.Errorf("answered by %v for %v, want a refusal for %v", last, reason, c.reason)
				}
				synctest.Wait() // the refusal is sent before the sender is put away
				if s := flock.Peers[0].Stats(); s.Quarantined != c.quarantined {
					t.Errorf("%d in quarantine, want %d", s.Quarantined, c.quarantined)
				}
				if took := time.Since(before); took > peer.Stall {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func lattice(t *testing.T) uint8 {
	codec, err := coding.ByName("lattice6+4")
	if err != nil {
		t.Fatal(err)
	}
	return uint8(codec.ID)
}

// TestAnUnfinishedTransferIsNoTransfer: a stream that ends midway is a failure, and the
// sender is not blamed for it.
func TestAnUnfinishedTransferIsNoTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock, last, _ := offering(t, nil, partOf(make(tensor.Vector, 64), 1))
		synctest.Wait() // who offers may see the end first
		s := flock.Peers[0].Stats()
		if last == wire.TypeTaken || s.Exchanges.Failed != 1 || s.Quarantined != 0 || s.Exchanges.Served != 0 {
			t.Errorf("answered by %v: %+v", last, s)
		}
	})
}

func TestTransfersNeedCodecsThatStandAlone(t *testing.T) {
	config := peer.Config{Run: "digits", Params: newModel()}
	meshed(nil)(0, &config)
	for _, codec := range []string{"lattice6+4", quant.Auto} {
		config.Training.Exchange.Codec.Codec = codec
		if p, err := peer.Start(t.Context(), config); err == nil {
			p.Close()
			t.Errorf("%s was taken", codec)
		}
	}
}
