package peertest_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

var shaped = flag.Bool("shaped", false, "exchange 25 million parameters over links of 1 Gbit/s and 20 ms, and of 100 Mbit/s and 40 ms; needs root, takes two minutes")

// shapedLink is a full-duplex link between two network namespaces: this process carries
// every packet from one TUN device to the other, at the link's rate and after its delay.
type shapedLink struct {
	rate   float64       // bytes a second, one way, with the headers of IP and TCP
	delay  time.Duration // one way
	device [2]*os.File
	moved  [2]atomic.Int64 // bytes out of each end
	drops  atomic.Int64    // packets
}

const (
	shapedMTU    = 1500
	shapedHeads  = 52                     // bytes of the headers of IP and TCP in a packet
	vnetHeader   = 10                     // struct virtio_net_hdr
	shapedBuffer = 100 * time.Millisecond // of the link's rate, before it drops
)

func shapedNames(end int) (namespace, address string) {
	return fmt.Sprintf("mm%d-%d", os.Getpid(), end), fmt.Sprint("10.214.7.", end+1)
}

// shape makes the link, or skips the test where that is not permitted.
func shape(t *testing.T, bits float64, round time.Duration) *shapedLink {
	t.Helper()
	l := &shapedLink{rate: bits / 8, delay: round / 2}
	ip := func(line string) {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("needs leave to make network namespaces: ip %s: %v: %s", line, err, out)
		}
	}
	for end := range l.device {
		name, address := shapedNames(end)
		_, other := shapedNames(1 - end)
		ip("netns add " + name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		device := fmt.Sprint("mmtun", end)
		l.device[end] = openTUN(t, device)
		ip(fmt.Sprintf("link set %s netns %s", device, name))
		ip(fmt.Sprintf("-n %s address add %s peer %s dev %s", name, address, other, device))
		ip(fmt.Sprintf("-n %s link set %s mtu %d up", name, device, shapedMTU))
		ip(fmt.Sprintf("-n %s link set lo up", name))
	}
	for end := range l.device {
		l.carry(t, end)
	}
	return l
}

// openTUN makes a device that hands over segments of TCP as they leave the kernel, many
// packets at a time.
func openTUN(t *testing.T, name string) *os.File {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("needs /dev/net/tun: %v", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		t.Fatal(err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4)
	}
	if err != nil {
		t.Skipf("needs leave to make a TUN device: %v", err)
	}
	device := os.NewFile(uintptr(fd), name)
	t.Cleanup(func() { device.Close() })
	return device
}

// carry moves what leaves one end to the other.
func (l *shapedLink) carry(t *testing.T, end int) {
	type packet struct {
		data []byte
		due  time.Time
	}
	queue, done := make(chan packet, 1<<14), make(chan struct{})
	from, to := l.device[end], l.device[1-end]
	go func() {
		defer close(queue)
		var free time.Time // when the link has sent all that it has taken
		for room := make([]byte, 1<<17); ; {
			n, err := from.Read(room)
			if err != nil {
				return // closed
			}
			now := time.Now()
			if free.Before(now) {
				free = now
			}
			if free.Sub(now) > shapedBuffer {
				l.drops.Add(1)
				continue
			}
			size := onTheLink(room[:n])
			free = free.Add(time.Duration(float64(size) / l.rate * 1e9))
			l.moved[end].Add(int64(size))
			queue <- packet{append([]byte(nil), room[:n]...), free.Add(l.delay)}
		}
	}()
	go func() {
		defer close(done)
		for p := range queue {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.data)
		}
	}()
	t.Cleanup(func() {
		from.Close()
		<-done
	})
}

// onTheLink is how many bytes what a device hands over is in packets of the MTU.
func onTheLink(data []byte) int {
	size := len(data) - vnetHeader
	if segment := int(binary.NativeEndian.Uint16(data[4:])); segment > 0 {
		size += (size - shapedHeads - 1) / segment * shapedHeads
	}
	return size
}

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

// shapedPeer starts this test once more in a namespace, and passes on its lines: an address to join
// it by, and then what each exchange moved and how long it took.
func shapedPeer(ctx context.Context, t *testing.T, end int, codec string, lanes int, join string) <-chan string {
	t.Helper()
	name, address := shapedNames(end)
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", name, os.Args[0], "-test.run", "^TestShapedPeer$", "-test.v")
	cmd.Env, cmd.Stderr = append(os.Environ(), shapedRole+"="+fmt.Sprint(address, " ", codec, " ", lanes, " ", join)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			if line, ok := strings.CutPrefix(s.Text(), "shaped: "); ok {
				lines <- line
			}
		}
	}()
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
	fmt.Println("shaped:", p.JoinAddresses()[0])
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
				fmt.Println("shaped:", x.Bytes, int64(x.Took))
			}
		case <-time.After(time.Second):
		}
	}
}
