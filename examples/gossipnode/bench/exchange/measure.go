package exchange

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/measure"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// steadyExchanges is how many exchanges come before the peak memory is read.
	steadyExchanges = 3
	// A burst of uninterrupted exchanges lasts about burstTime: from minBurst to maxBurst exchanges. There are at
	// most maxBursts.
	burstTime = 0.2 // seconds
	minBurst  = 2
	maxBurst  = 500
	maxBursts = 5
)

// exchangeBench is a running measurement in the process that initiates.
type exchangeBench struct {
	*node
	other *partnerProcess
	to    transport.PeerID
	tcp   *net.TCPConn // nil until the references are prepared
	exchangeFigures
}

// Measure measures exchanges with another process, which it starts and ends.
func (s exchangeSettings) Measure(std cli.Streams) (_ Result, err error) {
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	fmt.Fprintf(std.Err, "Measuring exchanges of %s parameters as %s between two processes.\n", measure.Thousands(uint64(s.parameters)), s.codec)
	other, ctx, err := startPartner(ctx, s, std)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(explain(ctx, err), other.close()) }()
	n, err := newNode(ctx, s, other.started.Addresses, newLog(std))
	if err != nil {
		return Result{}, err
	}
	b := &exchangeBench{node: n, other: other, to: transport.PeerID(other.started.Peer)}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, part := range []struct {
		says string
		do   func(context.Context) error
	}{
		{"Warming up.", b.warmUp},
		{"Training at either side while exchanges go on without a pause.", b.disturb},
		{"Reading the peak memory.", b.peaks},
		{"Preparing the references.", b.prepare},
		{"Taking turns with the references.", b.rounds},
		{"Exchanging, one right after the other.", b.bursts},
		{"Looking where the time goes, if that is asked for.", b.profile},
	} {
		fmt.Fprintln(std.Err, part.says)
		if err := part.do(ctx); err != nil {
			return Result{}, err
		}
	}
	return b.result()
}

func (b *exchangeBench) close() error {
	var err error
	if b.tcp != nil {
		if err = b.tcp.Close(); errors.Is(err, net.ErrClosed) {
			err = nil // the measurement was interrupted
		}
	}
	return errors.Join(err, b.node.close())
}

// warmUp lets the peers meet, takes a step at each, so that both have all the memory of a trainer, and makes a few
// exchanges.
func (b *exchangeBench) warmUp(ctx context.Context) error {
	if err := b.measured.ready(ctx); err != nil {
		return err
	}
	if _, err := b.other.ask(ctx, doStep); err != nil {
		return err
	}
	for range steadyExchanges {
		if _, _, err := b.measured.exchange(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

// peaks reads the peak memory of the peers, before the references allocate any.
func (b *exchangeBench) peaks(ctx context.Context) error {
	ours, err := host.PeakMemory()
	if err != nil {
		return err
	}
	theirs, err := b.other.ask(ctx, doPeak)
	b.peak = []uint64{ours, theirs.Peak}
	return err
}

// prepare prepares both processes for the references.
func (b *exchangeBench) prepare(ctx context.Context) error {
	if _, err := b.other.ask(ctx, doPrepare); err != nil {
		return err
	}
	if err := b.node.prepare(ctx, b.other.started.Addresses); err != nil {
		return err
	}
	if b.raw != nil {
		if err := b.raw.ready(ctx); err != nil {
			return err
		}
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.other.started.TCP)
	if err != nil {
		return fmt.Errorf("connecting to the other process: %w", err)
	}
	b.tcp = conn.(*net.TCPConn)
	b.congestion, err = host.CongestionControl(b.tcp)
	return err
}

// rounds measures all ways in turn; each round begins with another way. The first round warms up.
func (b *exchangeBench) rounds(ctx context.Context) error {
	ways := b.ways()
	for round := range b.settings.rounds + 1 {
		for i := range ways {
			if err := b.sample(ctx, ways[(round+i)%len(ways)], round > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// way is one way to average a model with the other process, or to move as many bytes.
type way struct {
	into *samples
	take func(context.Context) (span, error)
}

// span is a time and the processor time of this process in it.
type span struct{ seconds, cpu float64 }

func (b *exchangeBench) ways() []way {
	ways := []way{
		{&b.ours, func(ctx context.Context) (span, error) { return exchangeSpan(ctx, b.measured) }},
		{&b.tcpBytes, func(ctx context.Context) (span, error) { return timed(func() error { return b.leadTCP(ctx) }) }},
		{&b.streamBytes, b.overStream(orderSwap)},
		{&b.naive, b.overStream(orderNaive)},
	}
	if b.raw != nil {
		ways = append(ways, way{&b.rawOurs, func(ctx context.Context) (span, error) { return exchangeSpan(ctx, b.raw) }})
	}
	return ways
}

// exchangeSpan measures one exchange from its proposal on.
func exchangeSpan(ctx context.Context, b *steppedPeer) (span, error) {
	began, ended, err := b.exchange(ctx, 1)
	return span{ended.Took.Seconds(), ended.cpu - began.cpu}, err
}

// overStream returns the way that carries out an order on a new stream.
func (b *exchangeBench) overStream(kind orderKind) func(context.Context) (span, error) {
	return func(ctx context.Context) (span, error) {
		return timed(func() error { return b.leadStream(ctx, order{kind, 1}) })
	}
}

// leadTCP moves the bytes of an exchange over the plain TCP connection.
func (b *exchangeBench) leadTCP(ctx context.Context) error {
	p := tcpPipe{b.tcp}
	defer context.AfterFunc(ctx, p.Reset)()
	if err := b.tcp.SetDeadline(time.Now().Add(peerTimeout)); err != nil {
		return fmt.Errorf("bounding the time of a reference: %w", err)
	}
	return b.load.lead(p, order{orderSwap, 1})
}

// leadStream carries out an order on a new stream. The time to open it counts, as it does in an exchange.
func (b *exchangeBench) leadStream(ctx context.Context, o order) error {
	stream, err := b.transport.Open(ctx, b.to, referenceProtocol, referenceRun)
	if err != nil {
		return fmt.Errorf("opening a stream for a reference: %w", err)
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Reset)()
	return b.load.lead(stream, o)
}

func timed(do func() error) (span, error) {
	cpu, began := host.ProcessorSeconds(), time.Now()
	err := do()
	return span{time.Since(began).Seconds(), host.ProcessorSeconds() - cpu}, err
}

// sample measures a way once, and keeps the result if counts.
func (b *exchangeBench) sample(ctx context.Context, w way, counts bool) error {
	theirsBefore, err := b.other.ask(ctx, doUsage)
	if err != nil {
		return err
	}
	before := usageNow()
	taken, err := w.take(ctx)
	if err != nil {
		return err
	}
	after := usageNow()
	theirsAfter, err := b.other.ask(ctx, doUsage)
	if err != nil || !counts {
		return err
	}
	mallocs := after.Mallocs - before.Mallocs + theirsAfter.Mallocs - theirsBefore.Mallocs
	w.into.seconds = append(w.into.seconds, taken.seconds)
	w.into.cpu = append(w.into.cpu, taken.cpu+theirsAfter.CPU-theirsBefore.CPU)
	w.into.mallocs = append(w.into.mallocs, float64(mallocs))
	return nil
}

// bursts measures uninterrupted exchanges, in turn with moving as many times the bytes forth and back over one
// stream.
func (b *exchangeBench) bursts(ctx context.Context) error {
	times := int(min(max(burstTime/measure.Median(b.ours.seconds), minBurst), maxBurst))
	for range min(b.settings.rounds, maxBursts) {
		began, ended, err := b.measured.exchange(ctx, times)
		if err != nil {
			return err
		}
		b.exchangeRates = append(b.exchangeRates, float64(times)/ended.at.Sub(began.at).Seconds())
		pingPong, err := timed(func() error { return b.leadStream(ctx, order{orderPingPong, uint32(times)}) })
		if err != nil {
			return err
		}
		b.pingPongRates = append(b.pingPongRates, float64(times)/pingPong.seconds)
	}
	return nil
}

// result computes the figures from the samples.
func (b *exchangeBench) result() (Result, error) {
	s := b.settings
	_, last, _ := b.measured.look()
	ours := b.ours.seconds
	r := Result{
		Parameters: s.parameters, Codec: s.codec, Lanes: s.lanes, Bytes: last.Bytes,
		Seconds: measure.Median(ours), RawSeconds: measure.Median(ours), CPUSeconds: measure.Median(b.ours.cpu),
		RawTCPSeconds: measure.Median(b.tcpBytes.seconds), RatioToRawTCP: measure.Median(measure.Quotients(ours, b.tcpBytes.seconds)),
		RawLibp2pSeconds: measure.Median(b.streamBytes.seconds), RatioToRawLibp2p: measure.Median(measure.Quotients(ours, b.streamBytes.seconds)),
		NaiveSeconds: measure.Median(b.naive.seconds), NaiveRatio: measure.Median(measure.Quotients(b.naive.seconds, ours)),
		RawLibp2pCPUSeconds: measure.Median(b.streamBytes.cpu),
		ExchangesPerSecond:  measure.Median(b.exchangeRates), PingPongPerSecond: measure.Median(b.pingPongRates),
		PeakBytes: b.peak, PeakBudget: peerVectors*tensor.ValueSize*uint64(s.parameters) + peakSlack,
		Rounds: s.rounds, Slices: s.slices(), SliceValues: s.slice, GOMAXPROCS: runtime.GOMAXPROCS(0),
		CongestionControl: b.congestion, Security: "tls", Muxer: "yamux", CPU: host.Processor(),
		Refused: b.measured.machine.refused.Load(), Blocked: b.blocked, Stages: b.stages,
	}
	if b.raw != nil {
		r.RawSeconds = measure.Median(b.rawOurs.seconds)
	}
	for _, d := range b.blocked {
		r.BlockedP99, r.BlockedLongest = max(r.BlockedP99, d.P99Seconds), max(r.BlockedLongest, d.LongestSeconds)
	}
	var err error
	if r.SliceArithmetic, r.SliceArithmeticLongest, err = b.load.sliceArithmetic(s, b.codec); err != nil {
		return r, fmt.Errorf("measuring the arithmetic of a slice: %w", err)
	}
	r.AllocsPerExchange, r.AllocsPerSlice = netAllocations(b.ours.mallocs, b.streamBytes.mallocs, r.Slices)
	return r, nil
}
