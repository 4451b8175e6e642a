//go:build unix

package p2pnet

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// farEndVariable makes the test binary the other process of BenchmarkTuned.
const farEndVariable = "P2PNET_FAR_END"

// plainProtocol is what the default streams of the benchmark are opened for.
const plainProtocol = "/bench/1"

// plainStream opens a stream to a host of which the full address is given.
func plainStream(t testing.TB, from host.Host, to string) network.Stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	there, err := peer.AddrInfoFromString(to)
	if err == nil {
		err = from.Connect(ctx, *there)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := from.NewStream(ctx, there.ID, plainProtocol)
	if err == nil {
		_, err = s.Write([]byte{0})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serveFarEnd is the other process: it prints two addresses, then swaps bytes on
// the streams of a rival for each line it reads, "RIVAL BYTES", and answers with the
// nanoseconds of processor time that this took.
func serveFarEnd(in io.Reader, out io.Writer) error {
	type opened struct {
		lane   byte
		stream io.ReadWriter
	}
	accept := func(into chan opened, s io.ReadWriter) {
		var lane [1]byte
		if _, err := io.ReadFull(s, lane[:]); err == nil {
			into <- opened{lane[0], s}
		}
	}
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return err
	}
	plain, err := newPlainHost(key, nil)
	if err != nil {
		return err
	}
	defer plain.Close()
	plains := make(chan opened, 1)
	plain.SetStreamHandler(plainProtocol, func(s network.Stream) { accept(plains, s) })
	mine, err := New(loopback())
	if err != nil {
		return err
	}
	defer mine.Close()
	ours := make(chan opened, 4)
	if _, err := mine.Handle(speak, run, func(s transport.Stream) { accept(ours, s) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s/p2p/%s\n%s\n", plain.Addrs()[0], plain.ID(), mine.JoinAddresses()[0])

	streams := map[string][]io.ReadWriter{defaults: {(<-plains).stream}}
	lanes := make([]io.ReadWriter, 4)
	for range lanes {
		o := <-ours
		lanes[o.lane] = o.stream
	}
	streams[tuned], streams[twoLanes], streams[fourLanes] = lanes[:1], lanes[:2], lanes
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var rival string
		var bytes int
		if _, err := fmt.Sscan(lines.Text(), &rival, &bytes); err != nil {
			return err
		}
		before := processorTime()
		if err := swap(streams[rival], bytes); err != nil {
			return err
		}
		fmt.Fprintln(out, int64(processorTime()-before))
	}
	return nil
}

// beFarEnd ends the process if it is the other one.
func beFarEnd() {
	if os.Getenv(farEndVariable) == "" {
		return
	}
	time.AfterFunc(10*time.Minute, func() { os.Exit(2) }) // whatever became of the first
	if err := serveFarEnd(os.Stdin, os.Stdout); err != nil && !strings.Contains(err.Error(), "closed") {
		fmt.Fprintln(os.Stderr, "the far end:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
