package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const run = "digits"

// world is a run whose members hold rows, or take them.
type world struct {
	t   *testing.T
	net *memnet.Network
	all []*peer.Node
	log *zap.Logger // of members that come from now on
}

// logged returns the warnings of all members that are made after this call.
func (w *world) logged() *observer.ObservedLogs {
	core, logged := observer.New(zap.WarnLevel)
	w.log = zap.New(core)
	return logged
}

func newWorld(t *testing.T) *world {
	return &world{t: t, net: memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}})}
}

// member makes a node, which is closed at the end.
func (w *world) member(name string) *peer.Node {
	w.t.Helper()
	tr, err := w.net.Transport(name)
	if err != nil {
		w.t.Fatal(err)
	}
	membership, err := w.net.Membership(tr, run)
	if err != nil {
		w.t.Fatal(err)
	}
	network := peer.Network{Run: run, Transport: tr, Membership: membership, Log: w.log}
	if len(w.all) > 0 {
		network.Join = w.all[0].JoinAddresses()[:1]
	}
	n, err := peer.Join(w.t.Context(), network)
	if err != nil {
		w.t.Fatal(err)
	}
	w.all = append(w.all, n)
	w.t.Cleanup(func() {
		if err := n.Close(); err != nil {
			w.t.Error(err)
		}
		tr.Close()
	})
	return n
}

// met waits until all members see each other.
func (w *world) met() {
	w.t.Helper()
	for _, n := range w.all {
		if err := n.WaitMembers(w.t.Context(), len(w.all)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// numbered is rows first … first+rows−1 of four bytes each, their numbers.
type numbered struct{ first, rows int }

func (s numbered) Rows() int { return s.rows }

func (s numbered) Append(dst []byte, rows []int32) ([]byte, error) {
	for _, row := range rows {
		if int(row) >= s.rows || row < 0 {
			return dst, fmt.Errorf("row %d of %d", row, s.rows)
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(s.first)+uint32(row))
	}
	return dst, nil
}

// numbers are the rows in a batch.
func numbers(t *testing.T, b Batch) []int {
	t.Helper()
	if len(b.Data) != 4*b.Rows {
		t.Fatalf("%d bytes of %d rows", len(b.Data), b.Rows)
	}
	all := make([]int, b.Rows)
	for i := range all {
		all[i] = int(binary.LittleEndian.Uint32(b.Data[4*i:]))
	}
	return all
}

// errShape is the error of the Check for numbered rows.
var errShape = errors.New("not four bytes a row")

func check(rows int, data []byte) error {
	if len(data) != 4*rows {
		return errShape
	}
	return nil
}

func (w *world) hold(n *peer.Node, set Set, with HoldConfig) *Holder {
	w.t.Helper()
	h, err := Hold(n, set, with)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { h.Close() })
	return h
}

func (w *world) from(n *peer.Node, with FromConfig) *Batches {
	w.t.Helper()
	if with.Batch == 0 {
		with.Batch = 10
	}
	with.Check = check
	b, err := From(n, with)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { b.Close() })
	return b
}

// next is a batch that must come within a minute.
func (w *world) next(b *Batches) Batch {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	got, err := b.Next(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// hostile is a member that answers those that ask for rows as it likes.
func (w *world) hostile(name string, rows uint64, answer func(context.Context, *framed.Stream) error) *peer.Node {
	w.t.Helper()
	n := w.member(name)
	s, err := peer.Serve(n, transport.ProtocolRows, answer)
	if err != nil {
		w.t.Fatal(err)
	}
	s.Hold(rows)
	w.t.Cleanup(s.Close)
	return n
}
