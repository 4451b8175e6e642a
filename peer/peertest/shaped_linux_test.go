package peertest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

var shaped = flag.Bool("shaped", false, "exchange 25 million parameters over links of 1 Gbit/s and 20 ms, and of 100 Mbit/s and 40 ms; needs root, takes two minutes")

// TestShapedLinks: an exchange fills links as users have them; with one lane, and with as many
// as the links ask for once they are known.
func TestShapedLinks(t *testing.T) {
	if !*shaped {
		t.Skip("left out: takes two minutes as root; see the flag -shaped")
	}
	for _, link := range []struct {
		name  string
		bits  float64
		round time.Duration
	}{{"1 Gbit, 20 ms", 1e9, 20 * time.Millisecond}, {"100 Mbit, 40 ms", 1e8, 40 * time.Millisecond}} {
		for _, codec := range []string{"raw", "lattice6+4"} {
			for _, lanes := range []int{1, 0} {
				t.Run(fmt.Sprintf("%s, %s, lanes %d", link.name, codec, lanes), func(t *testing.T) {
					shape(t, link.bits, link.round).exchange(t, codec, lanes)
				})
			}
		}
	}
}

// linkLook is what a link has carried by a moment, from either end.
type linkLook struct {
	at    time.Time
	moved [2]int64
}

// exchange has a process at each end exchange models, and looks at the link meanwhile: at
// the whole of each exchange, and at what is between its first and its last tenth, which
// are a matter of round trips.
func (l *shapedLink) exchange(t *testing.T, codec string, lanes int) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	active := shapedPeer(ctx, t, 0, codec, lanes, <-shapedPeer(ctx, t, 1, codec, lanes, ""))
	if <-active == "" { // its address
		t.Fatal("no peer has started")
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	var looks []linkLook
	exchanges := 0
	for {
		select {
		case <-look.C:
			looks = append(looks, linkLook{time.Now(), [2]int64{l.moved[0].Load(), l.moved[1].Load()}})
		case line, more := <-active:
			var bytes uint64
			var took time.Duration
			if _, err := fmt.Sscan(line, &bytes, &took); err != nil || !more {
				if exchanges != shapedExchanges {
					t.Errorf("%d exchanges, want %d", exchanges, shapedExchanges)
				}
				return
			}
			exchanges++
			whole, middle := l.shares(looks, took)
			t.Logf("%6.1f MB in %.3f s: %.3f of the link's rate, %.3f but for the first and the last tenth; %d packets dropped so far",
				float64(bytes)/1e6, took.Seconds(), whole, middle, l.drops.Load())
		}
	}
}

// shares are how busy the busier way of the link was during an exchange that has just ended,
// and while the middle eight tenths of its bytes went over it.
func (l *shapedLink) shares(looks []linkLook, took time.Duration) (whole, middle float64) {
	last := looks[len(looks)-1]
	for len(looks) > 1 && last.at.Sub(looks[0].at) > took {
		looks = looks[1:]
	}
	way := 0
	if last.moved[1]-looks[0].moved[1] > last.moved[0]-looks[0].moved[0] {
		way = 1
	}
	all := last.moved[way] - looks[0].moved[way]
	at := func(tenths int64) linkLook {
		for _, look := range looks {
			if look.moved[way]-looks[0].moved[way] >= all*tenths/10 {
				return look
			}
		}
		return last
	}
	from, to := at(1), at(9)
	return float64(all) / took.Seconds() / l.rate, float64(to.moved[way]-from.moved[way]) / to.at.Sub(from.at).Seconds() / l.rate
}

const (
	shapedRole      = "MURMURATION_SHAPED"
	shapedExchanges = 4
)

// shapedPeer starts a process at an end, and passes on its lines: an address to join it by, and then what each exchange
// moved and how long it took.
func shapedPeer(ctx context.Context, t *testing.T, end int, codec string, lanes int, join string) <-chan string {
	t.Helper()
	_, address := shapedNames(end)
	lines, _ := atEnd(ctx, t, end, "TestShapedPeer", shapedRole+"="+fmt.Sprint(address, " ", codec, " ", lanes, " ", join))
	return lines
}

// TestShapedPeer is one of the two processes of TestShapedLinks.
func TestShapedPeer(t *testing.T) {
	var address, codec, join string
	var lanes int
	if n, _ := fmt.Sscan(os.Getenv(shapedRole), &address, &codec, &lanes, &join); n < 3 {
		t.Skip("a part of TestShapedLinks")
	}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "model", Shape: []int{25_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = float32(i%1000) / 1000
	}
	exchanged := make(chan peer.Exchanged, 8)
	config := peer.Config{
		Run: "shaped", Params: params, Network: peer.Network{Listen: []string{address + ":4213"}, Reach: peer.Reachable},
		Training: peer.Training{
			Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 1e-6},
			Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: codec}, Deadline: time.Minute, Lanes: lanes},
			Hooks:    peer.Hooks{Exchanged: func(x peer.Exchanged) { exchanged <- x }},
		},
	}
	if join != "" {
		config.Join, config.Network.Reach = []string{join}, peer.Unreachable
	}
	p, err := peer.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	fmt.Println(shapedLine, p.JoinAddresses()[0])
	if err := p.WaitMembers(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	for n := 0; join != "" && n < shapedExchanges || join == "" && p.Stats().Members > 1; {
		if join != "" || n == 0 { // who is asked trains no more than it must
			if err := p.Step(t.Context(), func(x, gradient tensor.Vector) (peer.Result, error) { return peer.Result{Samples: 1}, nil }); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case x := <-exchanged:
			if n++; x.Err == nil && join != "" {
				fmt.Println(shapedLine, x.Bytes, int64(x.Took))
			}
		case <-time.After(time.Second):
		}
	}
}
