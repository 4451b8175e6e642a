package mail

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/counters"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/requests"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	protocol = transport.ProtocolExchange
	run      = "digits"
	stall    = 10 * time.Second
	window   = 200 // bytes of a stream that the network holds: four messages
)

// post is two members, of whom one sends to the other.
type post struct {
	t        *testing.T
	net      *memnet.Network
	from, to *Mailbox
	serve    func(transport.Stream) // what the other does with a stream

	mu       sync.Mutex
	received []int
	ended    []error // of streams received
	lost     []error // by who sends
	unheard  []error // by the other
}

// newPost makes them, with what the configs say.
func newPost(t *testing.T, from, to Config) *post {
	t.Helper()
	p := &post{t: t, net: memnet.New(memnet.Config{Window: window})}
	p.serve = p.receive
	place := func(name string, c Config, lost *[]error) *Mailbox {
		tr, err := p.net.Transport(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		c.Requests, c.Protocol, c.Confirmed = requests.New(run, tr, stall, counters.New(), zap.NewNop()), protocol, true
		c.Lost = func(_ transport.PeerID, why error) { p.note(lost, why) }
		if c.Bounds == (Bounds{}) {
			c.Bounds = Bounds{Messages: 100, Bytes: 1 << 20}
		}
		return New(c)
	}
	p.from, p.to = place("a", from, &p.lost), place("b", to, &p.unheard)
	stop, err := p.to.Transport.Handle(protocol, run, func(s transport.Stream) { p.serve(s) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Cleanup(func() {
		p.to.Close(context.Background())
		p.from.Close(context.Background())
	})
	return p
}

// receive notes what comes on a stream, and of what that ends.
func (p *post) receive(s transport.Stream) {
	var f framed.Stream
	f.Begin(s, stall)
	err := p.to.Receive(&f, func(_ wire.Header, payload []byte) error {
		var m wire.Tell
		err := m.Decode(payload)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.received = append(p.received, int(m.Kind))
		return err
	})
	p.note(&p.ended, err)
	if err == io.EOF {
		s.Close()
	} else {
		s.Reset()
	}
}

func (p *post) note(list *[]error, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, err)
}

// send sends a message by each number.
func (p *post) send(kinds ...int) {
	p.t.Helper()
	for _, kind := range kinds {
		if err := Send(p.from, p.to.Transport.Self(), "", wire.Tell{Kind: uint8(kind)}); err != nil {
			p.t.Errorf("message %d: %v", kind, err)
		}
	}
}

func (p *post) got() (kinds []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.received)
}

// errs is a list of the post's.
func (p *post) errs(list *[]error) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(*list)
}

// want waits until nothing more happens, and compares what has come.
func (p *post) want(kinds ...int) {
	p.t.Helper()
	synctest.Wait()
	if got := p.got(); !slices.Equal(got, kinds) {
		p.t.Errorf("messages %v came, want %v", got, kinds)
	}
}

// waiting is how many partners are sent to, and how many messages wait for them.
func (p *post) waiting() (senders, messages int) {
	p.from.mu.Lock()
	defer p.from.mu.Unlock()
	for _, q := range p.from.queues {
		q.mu.Lock()
		messages += len(q.messages)
		q.mu.Unlock()
	}
	return len(p.from.queues), messages
}
