package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/tensor"
)

// trainer is the other side of a bridge: what a client in another language is.
type trainer struct {
	t       testing.TB
	control net.Conn
	there   net.Conn // the bridge's end
	answers *bufio.Scanner
	file    *os.File
	values  int
	ended   chan error // what Serve returned
	peer    *peer.Peer // that hello made
}

// world is where a test's peers meet.
type world struct {
	network   *memnet.Network
	configure func(*peer.Config)
}

// trainer starts a bridge, whose peer is called name.
func (w world) trainer(t testing.TB, name string, initial tensor.Vector) *trainer {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	return w.with(t, name, file, initial)
}

// with starts one with a memory.
func (w world) with(t testing.TB, name string, file *os.File, initial tensor.Vector) *trainer {
	t.Helper()
	here, there := net.Pipe()
	d := &trainer{t: t, control: here, there: there, answers: bufio.NewScanner(here), file: file, values: len(initial), ended: make(chan error, 1)}
	d.write(initial)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		d.ended <- bridge.Serve(ctx, there, file, bridge.Config{Start: func(ctx context.Context, h bridge.Hello) (*peer.Peer, error) {
			if len(h.Settings) > 0 {
				return nil, &bridge.Refusal{Code: bridge.CodeSettings, Detail: fmt.Sprint(h.Settings), Remedy: "leave them out"}
			}
			if h.Run == "" {
				return nil, fmt.Errorf("%w: Run is empty", peer.ErrConfig)
			}
			config := peer.Config{Run: h.Run, Params: h.Params, Join: h.Join, Network: w.place(t, name, h.Run), Training: peer.Training{Checkpoint: h.Checkpoint}}
			config.Training.Exchange.SliceLen = 16
			if w.configure != nil {
				w.configure(&config)
			}
			p, err := peer.Start(ctx, config)
			d.peer = p
			return p, err
		}})
	}()
	t.Cleanup(func() {
		cancel()
		here.Close()
		<-served
		file.Close()
	})
	return d
}

// place is a peer's in the network.
func (w world) place(t testing.TB, name, run string) peer.Network {
	tr, err := w.network.Transport(name)
	if err != nil {
		t.Error(err)
		return peer.Network{}
	}
	t.Cleanup(func() { tr.Close() })
	membership, err := w.network.Membership(tr, run)
	if err != nil {
		t.Error(err)
	}
	return peer.Network{Transport: tr, Membership: membership}
}

// write puts values into the memory, and read gets them.
func (d *trainer) write(v tensor.Vector) {
	d.t.Helper()
	if _, err := d.file.WriteAt(tensor.AppendBytes(nil, v), 0); err != nil {
		d.t.Fatal(err)
	}
}

func (d *trainer) read() tensor.Vector {
	d.t.Helper()
	raw := make([]byte, tensor.ValueSize*d.values)
	if _, err := d.file.ReadAt(raw, 0); err != nil {
		d.t.Fatal(err)
	}
	v := make(tensor.Vector, d.values)
	tensor.FromBytes(v, raw)
	return v
}

// answer is every field that an answer may have and tests look at.
type answer struct {
	OK      bool            `json:"ok"`
	Error   *bridge.Refusal `json:"error"`
	Start   string          `json:"start"`
	Values  int             `json:"values"`
	Quantum int             `json:"quantum"`
	Steps   uint64          `json:"steps"`
	Members int             `json:"members"`
	Joined  bool            `json:"joined"`
	Over    bool            `json:"over"`
	Added   bool            `json:"added"`
	Stats   map[string]any  `json:"stats"`
	Resume  json.RawMessage `json:"resume"`
	Flock   uint64          `json:"flock_steps"`
}

// code is that of the refusal, or empty.
func (a answer) code() string {
	if a.Error == nil {
		return ""
	}
	return a.Error.Code
}

// say sends a line, and returns the answer.
func (d *trainer) say(format string, args ...any) answer {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.control, format+"\n", args...); err != nil {
		d.t.Fatal(err)
	}
	if !d.answers.Scan() {
		d.t.Fatalf("no answer to %.200s: %v", fmt.Sprintf(format, args...), d.answers.Err())
	}
	var a answer
	if err := json.Unmarshal(d.answers.Bytes(), &a); err != nil {
		d.t.Fatalf("the answer %q: %v", d.answers.Text(), err)
	}
	if a.OK != (a.Error == nil) {
		d.t.Errorf("an answer that is neither one nor a refusal: %s", d.answers.Text())
	}
	return a
}

// hello greets with one range of all values, of a dtype.
func (d *trainer) hello(dtype, join string) answer {
	d.t.Helper()
	return d.say(`{"op":"hello","v":1,"run":"digits","join":[%s],"layout":[{"name":"w","shape":[%d],"dtype":%q}]}`, join, d.values, dtype)
}

// alone is a world for one.
func alone() world {
	return world{network: memnet.New(memnet.Config{}), configure: func(c *peer.Config) { c.Training.Exchange.Pace.Every = 1 }}
}

// counting is a vector of n values.
func counting(n int) tensor.Vector {
	v := make(tensor.Vector, n)
	for i := range v {
		v[i] = float32(i) / 8
	}
	return v
}
