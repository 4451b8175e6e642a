//go:build unix

package p2pnet

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// The rivals of BenchmarkTuned, which take turns. Lanes are connections beside
// that of Open, each carrying its share of the bytes.
const (
	defaults   = "default" // a stream of go-libp2p as it comes, over TCP, TLS and yamux
	tuned      = "tuned"
	twoLanes   = "2-lanes"
	fourLanes  = "4-lanes"
	tunedBytes = 100_000_000
	tunedTurns = 9
)

var rivals = []string{defaults, tuned, twoLanes, fourLanes}

// BenchmarkTuned moves 100 MB both ways at once between two processes, on the
// streams of this package and on those of go-libp2p as it comes, in turns of one
// run. It reports the medians of nine rounds: how many times as fast as the default
// a stream is (x-default), the same for lanes, MB/s each way, and processor seconds
// of both processes per GB moved. Run it alone:
//
//	go test ./peer/p2pnet -run '^$' -bench Tuned
func BenchmarkTuned(b *testing.B) {
	for range b.N {
		far := startFarEnd(b)
		rounds := far.compare(b, tunedTurns, tunedBytes)
		for _, rival := range rivals {
			speed := median(rounds, func(r round) float64 { return tunedBytes / 1e6 / r[rival].took.Seconds() })
			cost := median(rounds, func(r round) float64 { return r[rival].cpu.Seconds() / (2 * tunedBytes / 1e9) })
			times := median(rounds, func(r round) float64 { return r[defaults].took.Seconds() / r[rival].took.Seconds() })
			b.ReportMetric(speed, rival+"-MB/s")
			b.ReportMetric(cost, rival+"-s/GB")
			if metric := map[string]string{tuned: "x-default", twoLanes: "2-lanes-x", fourLanes: "4-lanes-x"}[rival]; metric != "" {
				b.ReportMetric(times, metric)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	control, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	b.Logf("congestion control %s, TLS, yamux, windows of %d to %d KiB, messages of %d KiB, writes of %d KiB, GOMAXPROCS %d",
		strings.TrimSpace(string(control)), initialWindow>>10, maxWindow>>10, maxMessage>>10, chunk>>10, runtime.GOMAXPROCS(0))
}

// TestTunedComparison runs the benchmark in small, so that it does not rot.
func TestTunedComparison(t *testing.T) {
	for rival, turn := range startFarEnd(t).compare(t, 1, 1<<20)[0] {
		if turn.took <= 0 || turn.cpu < 0 {
			t.Errorf("%s took %v and %v of processor time", rival, turn.took, turn.cpu)
		}
	}
}

// turn is what one rival took in one round, and round all of them.
type (
	turn  struct{ took, cpu time.Duration }
	round map[string]turn
)

func median(rounds []round, of func(round) float64) float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// farEnd is another process with the other ends of all streams.
type farEnd struct {
	say     io.Writer
	hear    *bufio.Reader
	streams map[string][]io.ReadWriter
}

// startFarEnd starts this test's binary a second time, as TestMain sees, and opens
// each rival's streams to it.
func startFarEnd(t testing.TB) *farEnd {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), farEndVariable+"=1")
	process.Stderr = os.Stderr
	say, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	hear, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		say.Close()
		if err := process.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	})
	far := &farEnd{say: say, hear: bufio.NewReader(hear), streams: make(map[string][]io.ReadWriter)}
	plain := plainHost(t, nil, nil)
	far.streams[defaults] = []io.ReadWriter{plainStream(t, plain, far.line(t))}
	near := start(t, Config{Listen: []string{}})
	at := far.line(t)
	id, err := near.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	first := openFar(t, near, id, 0)
	far.streams[tuned] = []io.ReadWriter{first}
	lanes := []io.ReadWriter{first}
	for lane := 1; lane < 4; lane++ {
		lanes = append(lanes, openFar(t, near, id, lane))
	}
	far.streams[twoLanes], far.streams[fourLanes] = lanes[:2], lanes
	return far
}

// openFar opens a stream to the other process, and tells it the lane.
func openFar(t testing.TB, near *Transport, to transport.PeerID, lane int) transport.Stream {
	t.Helper()
	s, err := near.open(t.Context(), to, speak, run, lane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Reset)
	if _, err := s.Write([]byte{byte(lane)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (f *farEnd) line(t testing.TB) string {
	t.Helper()
	text, err := f.hear.ReadString('\n')
	if err != nil {
		t.Fatalf("the other process says nothing: %v", err)
	}
	return strings.TrimSpace(text)
}

// compare lets the rivals take turns in moving bytes both ways.
func (f *farEnd) compare(t testing.TB, rounds, bytes int) []round {
	t.Helper()
	var all []round
	for i := range rounds + 1 {
		this := make(round)
		for _, rival := range rivals {
			before, start := processorTime(), time.Now()
			fmt.Fprintln(f.say, rival, bytes)
			if err := swap(f.streams[rival], bytes); err != nil {
				t.Fatalf("%s: %v", rival, err)
			}
			var theirs int64
			if _, err := fmt.Sscan(f.line(t), &theirs); err != nil {
				t.Fatal(err)
			}
			this[rival] = turn{time.Since(start), processorTime() - before + time.Duration(theirs)}
		}
		if i > 0 { // the first is to warm up
			all = append(all, this)
		}
	}
	return all
}

// swap sends and receives a number of bytes, split over some streams.
func swap(streams []io.ReadWriter, bytes int) error {
	share := bytes / len(streams)
	errs := make(chan error, 2*len(streams))
	for _, s := range streams {
		go func() { errs <- eachChunk(share, func(p []byte) error { _, err := s.Write(p); return err }) }()
		go func() { errs <- eachChunk(share, func(p []byte) error { _, err := io.ReadFull(s, p); return err }) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func eachChunk(bytes int, do func([]byte) error) error {
	p := make([]byte, chunk)
	for bytes > 0 {
		n := min(bytes, len(p))
		if err := do(p[:n]); err != nil {
			return err
		}
		bytes -= n
	}
	return nil
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
