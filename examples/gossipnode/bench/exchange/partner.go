package exchange

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// answer is the passive process's line on standard output for each request. The first answer comes without a request:
// it tells the address of the process.
type answer struct {
	Peer      string   `json:"peer,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	TCP       string   `json:"tcp,omitempty"`
	Peak      uint64   `json:"peak,omitempty"`
	// Stages are the processor seconds in each stage since doProfile.
	Stages map[string]float64 `json:"stages,omitempty"`
	usage
	disturbance
	// Failure is why the request failed.
	Failure string `json:"failure,omitempty"`
}

// The requests, each a line on standard input.
const (
	doStep    = "step"    // take a step without an exchange
	doTrain   = "train"   // train for a while, and answer how long the trainer waited
	doPeak    = "peak"    // answer the peak memory
	doPrepare = "prepare" // prepare for the references
	doUsage   = "usage"   // answer the resources used

	doProfile  = "profile"  // start the profile
	doProfiled = "profiled" // answer the profile
)

// partner is the passive process.
type partner struct {
	*node
	listener *net.TCPListener
	profiled profiling
	serving  sync.WaitGroup
}

// runPartner follows the parent's requests until the parent has ended.
func runPartner(s exchangeSettings, std cli.Streams) error {
	signal.Ignore(os.Interrupt) // a terminal sends it to the parent too
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	demands, ctx := readDemands(context.Background(), std.In)
	p, err := newPartner(ctx, s, newLog(std))
	if err != nil {
		return err
	}
	err = p.serve(ctx, demands, json.NewEncoder(std.Out))
	if ctx.Err() != nil {
		err = nil // the parent has ended, so nobody reads an error
	}
	return errors.Join(err, p.close())
}

// readDemands reads lines. The context ends with in, at the latest when the parent dies. The goroutine lives as long
// as in.
func readDemands(parent context.Context, in io.Reader) (<-chan string, context.Context) {
	ctx, cancel := context.WithCancelCause(parent)
	demands := make(chan string)
	go func() {
		defer cancel(cli.ErrInterrupted)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			select {
			case demands <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return demands, ctx
}

func newPartner(ctx context.Context, s exchangeSettings, log *zap.Logger) (*partner, error) {
	n, err := newNode(ctx, s, nil, log)
	if err != nil {
		return nil, err
	}
	p := &partner{node: n}
	if p.listener, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, errors.Join(fmt.Errorf("listening for plain TCP: %w", err), n.close())
	}
	return p, nil
}

func (p *partner) close() error {
	err := p.listener.Close()
	p.serving.Wait()
	return errors.Join(err, p.node.close())
}

// serve answers requests, one at a time.
func (p *partner) serve(ctx context.Context, demands <-chan string, out *json.Encoder) error {
	a := answer{Peer: string(p.transport.Self()), Addresses: p.measured.peer.JoinAddresses(), TCP: p.listener.Addr().String()}
	for {
		if err := out.Encode(a); err != nil {
			return fmt.Errorf("answering the parent: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case demand := <-demands:
			var err error
			if a, err = p.do(ctx, demand); err != nil {
				a.Failure = err.Error()
			}
		}
	}
}

func (p *partner) do(ctx context.Context, demand string) (a answer, err error) {
	switch demand {
	case doStep:
		err = p.measured.step(ctx)
	case doTrain:
		a.disturbance, err = p.measured.train(ctx)
	case doPeak:
		a.Peak, err = host.PeakMemory()
	case doPrepare:
		err = p.prepare(ctx)
	case doUsage:
		a.usage = usageNow()
	case doProfile:
		err = p.profiled.begin()
	case doProfiled:
		a.Stages, err = p.profiled.end()
	default:
		err = fmt.Errorf("no such request: %q", demand)
	}
	return a, err
}

// prepare prepares for the references, and serves them from then on.
func (p *partner) prepare(ctx context.Context) error {
	if err := p.node.prepare(ctx, nil); err != nil {
		return err
	}
	_, err := p.transport.Handle(referenceProtocol, referenceRun, func(s transport.Stream) {
		defer s.Close()
		p.obey(s)
	})
	if err != nil {
		return err
	}
	p.serving.Go(func() {
		// One connection comes, or none if the parent has ended.
		if conn, err := p.listener.AcceptTCP(); err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer conn.Close()
			p.obey(tcpPipe{conn})
		}
	})
	return nil
}

// obey carries out the orders on a pipe until it ends or breaks.
func (p *partner) obey(on pipe) {
	for {
		o, err := receiveOrder(on)
		if err == nil {
			err = p.load.follow(on, o)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				on.Reset()
			}
			return
		}
	}
}
