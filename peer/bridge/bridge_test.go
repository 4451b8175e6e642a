package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/bridge"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAConversation from hello to leave. What a trainer alone gets back is what it gave.
func TestAConversation(t *testing.T) {
	d := alone().trainer(t, "only", counting(100))
	if a := d.hello("f32", ""); a.Start != "founder" || a.Values != 100 || a.Quantum != 1 || a.Members != 1 || a.Over {
		t.Errorf("hello: %+v", a)
	}
	var want tensor.Vector
	for n := range 5 {
		want = d.read()
		for i := range want {
			want[i] += float32(n) / 7
		}
		d.write(want)
		if a := d.say(`{"op":"commit","steps":3,"samples":96,"loss":0.5}`); !a.Added || a.Steps != uint64(3*(n+1)) || a.Quantum < 1 {
			t.Errorf("commit %d: %+v", n, a)
		}
		if got := d.read(); !slices.Equal(got, want) {
			t.Fatalf("commit %d: the values changed", n)
		}
	}
	if a := d.say(`{"op":"stats"}`); a.Stats["steps"] != 15.0 || a.Stats["loss"] != 0.5 {
		t.Errorf("stats: %v", a.Stats)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if a := d.say(`{"op":"save","path":%q}`, path); a.Values != 100 {
		t.Errorf("save: %+v", a)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	params, _, err := tensor.ReadSafetensors(file)
	if err != nil || !slices.Equal(params.Vector(), want) {
		t.Errorf("the saved file: %v, or other values", err)
	}
	if a := d.say(`{"op":"merge"}`); !a.OK {
		t.Errorf("merge: %+v", a)
	}
	if a := d.say(`{"op":"commit","steps":1}`); a.code() != bridge.CodeOrder {
		t.Errorf("a commit after merge: %+v", a)
	}
	if a := d.say(`{"op":"leave"}`); !a.OK {
		t.Errorf("leave: %+v", a)
	}
	if err := <-d.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := d.peer.State(); got != control.Closed {
		t.Errorf("the peer is %v after leave", got)
	}
}

// TestRefusals: each leaves values and peer as they were, and the conversation goes on.
func TestRefusals(t *testing.T) {
	d := alone().trainer(t, "only", counting(10))
	long := strings.Repeat(" ", bridge.MaxLine)
	ranges := func(s string) string { return `{"op":"hello","v":1,"run":"digits","layout":[` + s + `]}` }
	for _, c := range []struct{ line, code, says string }{
		{"", bridge.CodeSyntax, "no request"},
		{"hello", bridge.CodeSyntax, "no request"},
		{`{}`, bridge.CodeSyntax, "no op"},
		{`{"op":"hello","lay":1}`, bridge.CodeSyntax, `unknown field "lay"`},
		{`{"op":"stats"}{"op":"stats"}`, bridge.CodeSyntax, "more on the line"},
		{`{"op":"commit","steps":1}`, bridge.CodeOrder, "commit before hello"},
		{`{"op":"hello","v":2}`, bridge.CodeVersion, "version 2"},
		{ranges(""), bridge.CodeLayout, "no range is shared"},
		{ranges(`{"name":"w","shape":[10],"kind":"soft"}`), bridge.CodeLayout, `kind "soft"`},
		{ranges(`{"name":"w","shape":[10],"sharing":"stolen"}`), bridge.CodeLayout, `sharing "stolen"`},
		{ranges(`{"name":"w","shape":[10],"dtype":"int8"}`), bridge.CodeLayout, `dtype "int8"`},
		{ranges(`{"name":"w","shape":[10],"sharing":"local"}`), bridge.CodeLayout, "no range is shared"},
		{ranges(`{"name":"w","shape":[5]},{"name":"w","shape":[5]}`), bridge.CodeLayout, "same name"},
		{ranges(`{"name":"w","shape":[-1]}`), bridge.CodeLayout, "-1"},
		{ranges(`{"name":"w","shape":[1000000,1000000]}`), bridge.CodeLayout, "at most"},
		{ranges(`{"name":"w","shape":[11]}`), bridge.CodeMemory, "40 bytes"},
		{`{"op":"hello","v":1,"memory":"/nowhere/at/all","layout":[{"name":"w","shape":[10]}]}`, bridge.CodeMemory, "/nowhere"},
		{`{"op":"hello","v":1,"memory":"/dev/null","layout":[{"name":"w","shape":[10]}]}`, bridge.CodeMemory, "no file"},
		{`{"op":"hello","v":1,"run":"digits","settings":{"x":1},"layout":[{"name":"w","shape":[10]}]}`, bridge.CodeSettings, "map[x:1]"},
		{`{"op":"hello","v":1,"run":"","layout":[{"name":"w","shape":[10]}]}`, bridge.CodeSettings, "Run"},
	} {
		a := d.say("%s", c.line)
		if a.code() != c.code || !strings.Contains(a.Error.Detail, c.says) || a.Error.Fatal || a.Error.Remedy == "" {
			t.Errorf("%.100s: %+v, want code %s and %q", c.line, a.Error, c.code, c.says)
		}
	}
	if a := d.hello("f32", ""); !a.OK {
		t.Fatal(a.Error)
	}
	want := d.read()
	for _, c := range []struct{ line, code string }{
		{`{"op":"hello","v":1,"layout":[]}`, bridge.CodeOrder},
		{`{"op":"fly"}`, bridge.CodeSyntax},
		{`{"op":"commit","steps":-1}`, bridge.CodeSteps},
		{`{"op":"commit","steps":65537}`, bridge.CodeSteps},
		{`{"op":"commit","steps":1.5}`, bridge.CodeSyntax},
		{`{"op":"commit","steps":1,"samples":-1}`, bridge.CodeSteps},
		{`{"op":"save","path":"model"}`, bridge.CodeSave},
		{`{"op":"save","path":"/nowhere/at/all"}`, bridge.CodeSave},
	} {
		if a := d.say("%s", c.line); a.code() != c.code || a.Error.Fatal {
			t.Errorf("%s: %+v, want code %s", c.line, a.Error, c.code)
		}
	}
	if a := d.say(`{"op":"commit","steps":2}`); !a.Added || a.Steps != 2 || !slices.Equal(d.read(), want) {
		t.Errorf("a commit afterwards: %+v", a)
	}
	if a := d.say("%s", long+`{"op":"stats"}`); a.code() != bridge.CodeSyntax || !a.Error.Fatal {
		t.Errorf("a line of %d bytes: %+v", len(long), a)
	}
	if err := <-d.ended; err == nil || errors.Is(err, bridge.ErrGone) {
		t.Errorf("Serve: %v, want the refusal", err)
	}
}

// TestAHelloWithoutEnd is refused before it is kept in memory.
func TestAHelloWithoutEnd(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	served := make(chan error, 1)
	go func() { served <- bridge.Serve(t.Context(), there, nil, bridge.Config{}) }()
	go func() {
		for piece := make([]byte, 1<<20); ; {
			if _, err := here.Write(piece); err != nil {
				return
			}
		}
	}()
	answer := make([]byte, 200)
	n, _ := here.Read(answer)
	if !strings.Contains(string(answer[:n]), `"syntax"`) {
		t.Errorf("answer %q", answer[:n])
	}
	if err := <-served; err == nil || errors.Is(err, bridge.ErrGone) {
		t.Errorf("Serve: %v", err)
	}
}

// TestNaNIsNotCommitted, and the trainer may go on from other values.
func TestNaNIsNotCommitted(t *testing.T) {
	d := alone().trainer(t, "only", counting(10))
	bad := counting(10)
	bad[3] = float32(math.NaN())
	d.write(bad)
	if a := d.hello("f32", ""); a.code() != bridge.CodeNotFinite || !strings.Contains(a.Error.Detail, `value 3, in range "w"`) {
		t.Errorf("hello with NaN: %+v", a)
	}
	d.write(counting(10))
	d.hello("f32", "")
	bad[3] = float32(math.Inf(1))
	d.write(bad)
	if a := d.say(`{"op":"commit","steps":1}`); a.code() != bridge.CodeNotFinite || !strings.Contains(a.Error.Detail, `value 3, in range "w"`) || a.Error.Fatal {
		t.Errorf("a commit of infinity: %+v", a)
	}
	bad[3] = 3e38
	d.write(bad)
	if a := d.say(`{"op":"commit","steps":1}`); a.code() != bridge.CodeNotFinite {
		t.Errorf("a commit from afar: %+v", a)
	}
	d.write(counting(10))
	if a := d.say(`{"op":"commit","steps":1}`); !a.Added || a.Steps != 1 || !slices.Equal(d.read(), counting(10)) {
		t.Errorf("a commit afterwards: %+v, %v", a, d.read())
	}
}

// TestTheMemoryShrinks: a commit is refused, and the next goes well when it is back.
func TestTheMemoryShrinks(t *testing.T) {
	d := alone().trainer(t, "only", counting(100))
	d.hello("f32", "")
	if err := d.file.Truncate(396); err != nil {
		t.Fatal(err)
	}
	if a := d.say(`{"op":"commit","steps":1}`); a.code() != bridge.CodeMemory || a.Error.Fatal {
		t.Errorf("a commit from a file too short: %+v", a)
	}
	d.write(counting(100))
	if a := d.say(`{"op":"commit","steps":1}`); !a.Added || a.Steps != 1 {
		t.Errorf("a commit afterwards: %+v", a)
	}
}

// TestTheTrainerGoes without a word: its peer leaves in good order, even while a line of it waits.
func TestTheTrainerGoes(t *testing.T) {
	for _, when := range []string{"before hello", "after hello", "in a line", "while the run is held up"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := alone()
				if when == "while the run is held up" {
					w.configure = func(c *peer.Config) { c.Join = []string{"mem:nobody"} } // joining takes seconds
				}
				d := w.trainer(t, "only", counting(10))
				switch when {
				case "after hello":
					d.hello("f32", "")
				case "in a line":
					d.hello("f32", "")
					fmt.Fprint(d.control, `{"op":"commit","st`)
				case "while the run is held up":
					fmt.Fprintln(d.control, `{"op":"hello","v":1,"run":"digits","layout":[{"name":"w","shape":[10]}]}`)
					synctest.Wait()
				}
				began := time.Now()
				d.control.Close()
				if err := <-d.ended; !errors.Is(err, bridge.ErrGone) {
					t.Errorf("Serve: %v", err)
				}
				if d.peer != nil && d.peer.State() != control.Closed {
					t.Errorf("the peer is %v", d.peer.State())
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %s to notice", took)
				}
			})
		})
	}
}

// TestTheServiceEnds: the peer leaves, and the trainer reads the end.
func TestTheServiceEnds(t *testing.T) {
	here, there := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- bridge.Serve(ctx, there, nil, bridge.Config{}) }()
	cancel()
	if _, err := here.Read(make([]byte, 1)); err == nil {
		t.Error("the connection did not end")
	}
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: %v", err)
	}
}

// TestWhatIsCommittedIsInTheSumOnce: two trainers, with exchanges all the time.
func TestWhatIsCommittedIsInTheSumOnce(t *testing.T) {
	for _, dtype := range []string{"f32", "bf16"} {
		t.Run(dtype, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{network: memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}}), configure: func(c *peer.Config) { c.Training.Exchange.Pace.Every = 2 }}
				trainers := []*trainer{w.trainer(t, "a", counting(50)), w.trainer(t, "b", counting(50))}
				trainers[0].hello(dtype, "")
				if a := trainers[1].hello(dtype, `"mem:a"`); a.Start != "joined" {
					t.Errorf("the second: %+v", a)
				}
				want := make([]float64, 50)
				for i, v := range counting(50) {
					want[i] = 2 * float64(v)
				}
				for n := range 200 {
					d := trainers[n%2]
					v := d.read()
					for i := range v {
						before := v[i]
						v[i] -= 0.01 * (v[i] - float32(n%2)*4)
						want[i] += float64(v[i]) - float64(before)
					}
					d.write(v)
					if a := d.say(`{"op":"commit","steps":1}`); !a.Added {
						t.Fatalf("commit %d: %+v", n, a)
					}
					time.Sleep(3 * time.Millisecond)
				}
				time.Sleep(time.Second) // exchanges under way end
				got, one := make([]float64, 50), make(tensor.Vector, 50)
				for _, d := range trainers {
					if _, err := d.peer.Snapshot(one, 0); err != nil {
						t.Fatal(err)
					}
					for i, v := range one {
						got[i] += float64(v)
					}
				}
				for i := range got {
					if math.Abs(got[i]-want[i]) > 1e-3 {
						t.Fatalf("value %d: the sum is %g, committed were %g", i, got[i], want[i])
					}
				}
				if met := trainers[0].peer.Stats().Exchanges.Completed(); met < 20 {
					t.Errorf("only %d exchanges: the test shows nothing", met)
				}
			})
		})
	}
}

// TestTheRunEnds: the last commit says so, and merge hands over the one model of all.
func TestTheRunEnds(t *testing.T) {
	w := alone()
	w.configure = func(c *peer.Config) { c.Training.Work.Steps = 10 }
	d := w.trainer(t, "only", counting(10))
	d.hello("f32", "")
	over := false
	for range 20 {
		a := d.say(`{"op":"commit","steps":1}`)
		if over = a.Over; over {
			break
		}
		if a.Quantum > 10 {
			t.Errorf("a quantum of %d with at most 10 steps to go", a.Quantum)
		}
	}
	if !over {
		t.Error("nobody said that the run is over")
	}
	d.write(make(tensor.Vector, 10)) // what it has trained alone since
	if a := d.say(`{"op":"commit","steps":1}`); a.Added || !a.Over || !slices.Equal(d.read(), counting(10)) {
		t.Errorf("a commit after the run: %+v, and P is %v, want the peer's model", a, d.read())
	}
	if a := d.say(`{"op":"merge"}`); !a.Over || a.Steps != 10 {
		t.Errorf("merge: %+v", a)
	}
}

// TestJoined: another member was met, and stays so when that has gone.
func TestJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alone()
		first, second := w.trainer(t, "first", counting(10)), w.trainer(t, "second", counting(10))
		if a, told := first.hello("f32", ""), first.say(`{"op":"stats"}`); a.Joined || told.Stats["joined"] != false {
			t.Errorf("alone: %+v, %v", a, told.Stats)
		}
		second.hello("f32", `"mem:first"`)
		time.Sleep(time.Second)
		for name, d := range map[string]*trainer{"first": first, "second": second} {
			told := d.say(`{"op":"stats"}`)
			if a := d.say(`{"op":"commit"}`); !a.Joined || a.Members != 2 || told.Stats["joined"] != true {
				t.Errorf("the %s of two: %+v, %v", name, a, told.Stats)
			}
		}
		second.say(`{"op":"leave"}`)
		time.Sleep(time.Minute)
		if a := first.say(`{"op":"commit"}`); !a.Joined || a.Members != 1 {
			t.Errorf("when the other has left: %+v", a)
		}
	})
}

// TestBusy: a trainer that comes while another is served is told so.
func TestBusy(t *testing.T) {
	var said strings.Builder
	if err := bridge.Busy(&said); err != nil || !strings.Contains(said.String(), `"code":"busy"`) || !strings.Contains(said.String(), `"fatal":true`) {
		t.Errorf("%v, %q", err, said.String())
	}
}
