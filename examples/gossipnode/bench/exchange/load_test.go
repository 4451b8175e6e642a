package exchange

import (
	"bytes"
	"math"
	"net"
	"testing"

	"github.com/seed-97356399/murmuration/quant"
)

// memoryPipe is a pipe in memory that counts what goes through.
type memoryPipe struct {
	net.Conn
	sent, received int
}

func (p *memoryPipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.received += n
	return n, err
}

func (p *memoryPipe) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	p.sent += n
	return n, err
}

func (p *memoryPipe) Reset() { _ = p.Close() }

func testLoads(t *testing.T, codec string) (active, passive *load, s exchangeSettings) {
	t.Helper()
	c, err := quant.ByName(codec)
	if err != nil {
		t.Fatal(err)
	}
	s = exchangeSettings{parameters: 1000, slice: 300, seed: 1}
	other := s
	other.seed = 2
	return newLoad(s, c), newLoad(other, c), s
}

// TestOrders shows that every order moves as many bytes as it should, and that the
// naive ones leave both sides with the mean.
func TestOrders(t *testing.T) {
	const vector, backBytes = 4000, 1300 // codecs may answer in fewer bytes
	for _, c := range []struct {
		name    string
		codec   string
		order   order
		there   int // bytes, the order included
		back    int // the end of it included
		average bool
	}{
		{"swap", "raw", order{orderSwap, 1}, vector + orderSize, backBytes + 1, false},
		{"swap twice", "bf16", order{orderSwap, 2}, vector + orderSize, 2*backBytes + 1, false},
		{"naive", "bf16", order{orderNaive, 1}, vector + orderSize, vector + 1, true},
		{"ping-pong", "raw", order{orderPingPong, 3}, 3*vector + orderSize, 3*backBytes + 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			active, passive, _ := testLoads(t, c.codec)
			active.back, passive.back = flow{backBytes, 400}, flow{backBytes, 400}
			a, b := bytes.Clone(active.encode()), bytes.Clone(passive.encode())
			near, far := net.Pipe()
			from, to := &memoryPipe{Conn: near}, &memoryPipe{Conn: far}
			followed := make(chan error, 1)
			go func() {
				o, err := receiveOrder(to)
				if err == nil {
					err = passive.follow(to, o)
				}
				followed <- err
			}()
			if err := active.lead(from, c.order); err != nil {
				t.Fatal(err)
			}
			if err := <-followed; err != nil {
				t.Fatal(err)
			}
			if from.sent != c.there || from.received != c.back {
				t.Errorf("%d bytes there and %d back, want %d and %d", from.sent, from.received, c.there, c.back)
			}
			checkMeans(t, active, passive, a, b, c.average)
		})
	}
}

// checkMeans tests that both hold the mean of what they had, or each its own.
func checkMeans(t *testing.T, active, passive *load, a, b []byte, average bool) {
	t.Helper()
	copy(active.taken, a)
	copy(passive.taken, b)
	for i := range active.values {
		wantActive, wantPassive := active.decoded(i), passive.decoded(i)
		if average {
			wantActive = (wantActive + wantPassive) / 2
			wantPassive = wantActive
		}
		if math.Abs(float64(active.values[i]-wantActive)) > 1e-9 || math.Abs(float64(passive.values[i]-wantPassive)) > 1e-9 {
			t.Fatalf("value %d is %v and %v, want %v and %v", i, active.values[i], passive.values[i], wantActive, wantPassive)
		}
	}
}

// TestOrderBroken shows that a pipe which breaks, or a stranger who asks for
// nonsense, ends an order with an error and no goroutine left.
func TestOrderBroken(t *testing.T) {
	for kind := orderSwap; kind <= orderPingPong; kind++ {
		active, _, _ := testLoads(t, rawCodec)
		near, far := net.Pipe()
		go func() {
			_, _ = receiveOrder(far)
			_, _ = far.Read(make([]byte, 100))
			_ = far.Close()
		}()
		if err := active.lead(&memoryPipe{Conn: near}, order{kind, 1}); err == nil {
			t.Errorf("order %d went through a broken pipe", kind)
		}
	}
	for _, text := range []string{"", "\x01", "\x00\x01\x00\x00\x00", "\x04\x01\x00\x00\x00", "\x01\x00\x00\x00\x00", "\x01\xff\xff\xff\xff"} {
		if o, err := receiveOrder(bytes.NewReader([]byte(text))); err == nil {
			t.Errorf("%q is order %+v", text, o)
		}
	}
}

// TestCodedSize shows that the references move what the slices come to, the last
// one included, which is shorter.
func TestCodedSize(t *testing.T) {
	for _, codec := range quant.Names() {
		c, err := quant.ByName(codec)
		if err != nil {
			t.Fatal(err)
		}
		s := exchangeSettings{parameters: 1000, slice: 300}
		if got, want := s.coded(c.MaxSize), 3*c.MaxSize(300)+c.MaxSize(100); got != want || s.slices() != 4 {
			t.Errorf("%s: %d bytes in %d slices, want %d in 4", codec, got, s.slices(), want)
		}
	}
}
