// Package stateserver gives joiners the model, slice by slice with hashes, from a frozen
// copy: the trainer and exchanges go on meanwhile. See docs/design/015.
package stateserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// maxJoiners is how many joiners copy the model at once. A further one is refused, asks
// other members, and gets its turn after a few seconds.
const maxJoiners = 4

// maxPause bounds the pause after a slice that leaves exchanges their share of the link.
const maxPause = 100 * time.Millisecond

// errClosed: the peer is closing.
var errClosed = errors.New("the peer is closing")

// Config is what a state server needs from its peer.
type Config struct {
	*requests.Requests
	Layout    [wire.HashSize]byte
	Replica   *replica.Replica
	Flock     *flock.Flock             // the steps of the peer, and of the flock
	Model     interface{ Open() bool } // tells whether there is a model to give
	Exchanges interface{ Busy() bool } // tells whether an exchange is under way; exchanges then get half of the time
	// Quarantine tells how much longer a peer stays in quarantine, 0 if it is not.
	Quarantine interface {
		Quarantined(transport.PeerID) time.Duration
	}
	Closing <-chan struct{} // closed when the peer begins to close
}

// Server gives the model of one peer to joiners. Safe for concurrent use.
type Server struct {
	Config
	freezer *freezer
	places  places
	sent    atomic.Uint64
}

// New makes a state server.
func New(config Config) *Server {
	return &Server{Config: config, freezer: newFreezer(), places: newPlaces(maxJoiners)}
}

// Joiners is the number of joiners that copy the model now.
func (d *Server) Joiners() int { return d.places.count() }

// Sent is the number of slices given so far.
func (d *Server) Sent() uint64 { return d.sent.Load() }

// Serve gives slices of the model to a joiner, until ctx ends. An error means that no
// request could be read.
func (d *Server) Serve(ctx context.Context, stream *framed.Stream) error {
	var request wire.StateRequest
	if _, err := stream.Receive(&request); err != nil {
		return err
	}
	if reason, detail := d.declines(stream.Remote(), request); reason != 0 {
		stream.Refuse(0, reason, detail)
		return nil
	}
	d.serve(ctx, stream, request.Steps)
	return nil
}

// declines finds the reason not to give the model to a joiner; 0 if there is none.
func (d *Server) declines(joiner transport.PeerID, request wire.StateRequest) (reason wire.Reason, detail string) {
	if reason, detail = wire.Differs(d.Run, d.Layout, request.Run, request.Layout); reason != 0 {
		return reason, detail
	}
	if left := d.Quarantine.Quarantined(joiner); left > 0 {
		return wire.ReasonQuarantine, fmt.Sprintf("for another %s", left.Round(time.Second))
	}
	if !d.Model.Open() {
		return wire.ReasonJoining, "still copying the model"
	}
	return 0, ""
}

// serve gives the model to a joiner if there is a place for it. The frozen copy has at
// least least steps, if the model has as many.
func (d *Server) serve(ctx context.Context, stream *framed.Stream, least uint64) {
	joiner := stream.Remote()
	ctx, yield := context.WithCancel(ctx)
	defer yield()
	stopWatch := context.AfterFunc(ctx, stream.Reset)
	defer stopWatch()
	at := &place{peer: joiner, block: d.Transport.Block(joiner), yield: yield}
	if !d.places.enter(at, time.Now()) {
		stream.Refuse(0, wire.ReasonBusy, "giving its model to as many newcomers as it takes")
		return
	}
	defer d.places.leave(at)
	switch err := d.give(ctx, stream, least); {
	case err == nil:
		stream.Finish()
	case errors.Is(err, errRetired):
		stream.Refuse(0, wire.ReasonBusy, err.Error())
	case errors.Is(err, errClosed):
		stream.Refuse(0, wire.ReasonClosing, "")
	case ctx.Err() != nil:
		d.Log.Debug("a newcomer has made way for another", zap.String("peer", string(joiner)))
	default:
		stream.Reset()
		d.Log.Info("a newcomer's copy broke off", zap.String("peer", string(joiner)), zap.Error(err))
	}
}

// give sends the manifest, and then the requested slices until the joiner closes.
func (d *Server) give(ctx context.Context, stream *framed.Stream, least uint64) error {
	timeout, cancel := context.WithTimeout(ctx, stream.Stall)
	copied, err := d.freezer.acquire(timeout, min(least, d.Flock.Age()), d.freeze)
	cancel()
	if err != nil {
		return errRetired // the readers of the old copy are slow to end
	}
	defer d.freezer.release(copied)
	manifest, err := d.manifest(copied)
	if err != nil {
		return fmt.Errorf("signing the manifest: %w", err)
	}
	if err := framed.Say(stream, 0, manifest); err != nil {
		return err
	}
	g := donation{Server: d, stream: stream, copied: copied, digest: sha256.Sum256(manifest.Append(nil))}
	for {
		var want wire.StateWant
		header, payload, err := stream.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("waiting for what is wanted: %w", err)
		case header.Type != wire.TypeStateWant:
			return fmt.Errorf("waiting for what is wanted: got %v: %w", header.Type, wire.ErrType)
		}
		if err := want.Decode(payload); err != nil {
			return err
		}
		if int64(want.First)+int64(want.Count) > int64(len(copied.slices)) {
			return fmt.Errorf("%d slices from %d on are wanted of %d: %w", want.Count, want.First, len(copied.slices), wire.ErrMessage)
		}
		if err := g.sendHashes(want); err != nil {
			return err
		}
		if err := g.sendSlices(want); err != nil {
			return err
		}
	}
}

// freeze makes a frozen copy of the model. It takes as much memory as the model has.
func (d *Server) freeze() *frozen {
	steps, taken, full := d.Flock.Age(), time.Now(), make(tensor.Vector, d.Replica.Len())
	d.Replica.Consistent(full)
	return newFrozen(d.Replica.CompactShared(full), d.Replica.SliceLen(), steps, taken)
}

// manifest describes a frozen copy.
func (d *Server) manifest(copied *frozen) (wire.Manifest, error) {
	m := wire.Manifest{
		Run: d.Run, Layout: d.Layout, Server: string(d.Transport.Self()), Incarnation: d.Flock.Incarnation(),
		Steps: copied.steps, FlockSteps: d.Flock.Total(), Values: uint64(d.Replica.SharedLen()), SliceLen: uint32(d.Replica.SliceLen()),
	}
	var err error
	m.Signature, err = d.Transport.Sign(m.Statement(nil))
	return m, err
}

// donation is the sending of the model to one joiner.
type donation struct {
	*Server
	stream *framed.Stream
	copied *frozen
	digest [wire.HashSize]byte // of the manifest
	hashes []byte              // scratch
}

// sendHashes signs and sends the hashes of the requested slices.
func (g *donation) sendHashes(want wire.StateWant) error {
	g.hashes = g.hashes[:0]
	for _, hash := range g.copied.hashes[want.First : want.First+want.Count] {
		sum := hash()
		g.hashes = append(g.hashes, sum[:]...)
	}
	m := wire.StateHashes{Hashes: g.hashes}
	var err error
	if m.Signature, err = g.Transport.Sign(m.Statement(nil, g.digest, want.First)); err != nil {
		return fmt.Errorf("signing hashes: %w", err)
	}
	g.stream.Frame = m.Append(wire.Reserve(g.stream.Frame))
	return g.stream.Seal(wire.Header{Type: wire.TypeStateHashes, Slice: want.First})
}

// sendSlices sends the requested slices, at the pace that exchanges leave.
func (g *donation) sendSlices(want wire.StateWant) error {
	for i := want.First; i < want.First+want.Count; i++ {
		select {
		case <-g.copied.retired:
			return errRetired
		case <-g.Closing:
			return errClosed
		default:
		}
		began := time.Now()
		g.stream.Frame = tensor.AppendBytes(wire.Reserve(g.stream.Frame), g.copied.slices[i])
		if err := g.stream.Seal(wire.Header{Type: wire.TypeStateSlice, Slice: i}); err != nil {
			return err
		}
		g.sent.Add(1)
		if !g.Exchanges.Busy() {
			continue
		}
		select {
		case <-time.After(min(time.Since(began), maxPause, g.stream.Stall/2)): // a joiner waits no longer than Stall
		case <-g.Closing:
			return errClosed
		}
	}
	return nil
}
