package peer_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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
	names  [2]string
	device [2]*os.File
	moved  [2]meter // out of each end
}

// meter counts what a direction of a link has carried.
type meter struct{ bytes, dropped atomic.Int64 }

const (
	shapedMTU    = 1500
	shapedHeads  = 52                     // bytes of the headers of IP and TCP in a packet
	vnetHeader   = 10                     // struct virtio_net_hdr
	shapedBuffer = 100 * time.Millisecond // of the link's rate, before it drops
)

// shape makes the link, or skips the test where that is not permitted.
func shape(t *testing.T, bits float64, round time.Duration) *shapedLink {
	t.Helper()
	l := &shapedLink{rate: bits / 8, delay: round / 2}
	for end := range l.names {
		l.names[end] = fmt.Sprintf("mm%d-%d", os.Getpid(), end)
		ip(t, "netns", "add", l.names[end])
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", l.names[end]).Run() })
		device := fmt.Sprintf("mmtun%d", end)
		l.device[end] = openTUN(t, device)
		ip(t, "link", "set", device, "netns", l.names[end])
		in := func(words ...string) { ip(t, append([]string{"-n", l.names[end]}, words...)...) }
		in("address", "add", l.address(end), "peer", l.address(1-end), "dev", device)
		in("link", "set", device, "mtu", fmt.Sprint(shapedMTU), "up")
		in("link", "set", "lo", "up")
	}
	for end := range l.device {
		l.carry(t, end)
	}
	return l
}

func (l *shapedLink) address(end int) string { return fmt.Sprint("10.214.7.", end+1) }

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Skipf("needs leave to make network namespaces: ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
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
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		t.Skipf("needs leave to make a TUN device: %v", err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4); err != nil {
		t.Fatal(err)
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
	queue := make(chan packet, 1<<14)
	from, to, count := l.device[end], l.device[1-end], &l.moved[end]
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
				count.dropped.Add(1)
				continue
			}
			size := onTheLink(room[:n])
			free = free.Add(time.Duration(float64(size) / l.rate * 1e9))
			count.bytes.Add(int64(size))
			queue <- packet{append([]byte(nil), room[:n]...), free.Add(l.delay)}
		}
	}()
	done := make(chan struct{})
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
					l := shape(t, link.bits, link.round)
					l.exchange(t, codec, lanes)
				})
			}
		}
	}
}

// exchange has a process at each end exchange models, and looks at the link meanwhile: at
// the whole of each exchange, and at what is between its first and its last tenth, which
// are a matter of round trips.
func (l *shapedLink) exchange(t *testing.T, codec string, lanes int) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	passive := l.host(ctx, t, 1, codec, lanes, "")
	active := l.host(ctx, t, 0, codec, lanes, <-passive)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	var looks []linkLook
	for {
		select {
		case <-look.C:
			looks = append(looks, linkLook{time.Now(), [2]int64{l.moved[0].bytes.Load(), l.moved[1].bytes.Load()}})
		case line, more := <-active:
			if !more {
				return
			}
			var x shapedExchange
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				continue
			}
			whole, middle := l.shares(looks, x.Took)
			t.Logf("%6.1f MB in %.3f s: %.3f of the link's rate, %.3f but for the first and the last tenth; %d and %d packets dropped so far",
				float64(x.Bytes)/1e6, x.Took.Seconds(), whole, middle, l.moved[0].dropped.Load(), l.moved[1].dropped.Load())
		}
	}
}

// linkLook is what a link has carried by a moment, from either end.
type linkLook struct {
	at    time.Time
	moved [2]int64
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

type shapedExchange struct {
	Bytes uint64
	Took  time.Duration
}

const (
	shapedRole      = "MURMURATION_SHAPED"
	shapedExchanges = 4
)

// host starts this test once more in a namespace, and passes on its lines.
func (l *shapedLink) host(ctx context.Context, t *testing.T, end int, codec string, lanes int, join string) <-chan string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", l.names[end], os.Args[0], "-test.run", "^TestShapedHost$", "-test.v")
	cmd.Env = append(os.Environ(), shapedRole+"="+fmt.Sprint(l.address(end), " ", codec, " ", lanes, " ", join))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			if word, ok := strings.CutPrefix(s.Text(), "host: "); ok {
				lines <- word
			}
		}
	}()
	return lines
}

// TestShapedHost is one of the two processes of TestShapedLinks.
func TestShapedHost(t *testing.T) {
	words := strings.Split(os.Getenv(shapedRole), " ")
	if len(words) != 4 {
		t.Skip("a part of TestShapedLinks")
	}
	address, codec, join := words[0], words[1], words[3]
	lanes, err := strconv.Atoi(words[2])
	if err != nil {
		t.Fatal(err)
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
	reach := peer.Reachable
	if join != "" {
		reach = peer.Unreachable
	}
	config := peer.Config{
		Run:     "shaped",
		Params:  params,
		Network: peer.Network{Listen: []string{address + ":4213"}, Reach: reach},
		Training: peer.Training{Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 1e-6}, Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Codec: quant.Policy{Codec: codec}, Deadline: time.Minute, Lanes: lanes}, Hooks: peer.Hooks{Exchanged: func(x peer.Exchanged) {
			if x.Err != nil {
				return
			}
			select {
			case exchanged <- x:
			default:
			}
		}}},
	}
	if join != "" {
		config.Join = []string{join}
	}
	p, err := peer.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	step := func() {
		err := p.Step(t.Context(), func(x, gradient tensor.Vector) (peer.Result, error) { return peer.Result{Samples: 1}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("host:", p.JoinAddresses()[0])
	if err := p.WaitMembers(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	step()
	if join == "" {
		<-exchanged
		for p.Stats().Members > 1 {
			time.Sleep(10 * time.Millisecond)
		}
		return
	}
	for range shapedExchanges {
		x := <-exchanged
		line, _ := json.Marshal(shapedExchange{Bytes: x.Bytes, Took: x.Took})
		fmt.Println("host:", string(line))
		step()
	}
}
