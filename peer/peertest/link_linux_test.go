package peertest_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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

// shapedLine begins the lines that a process at an end passes on.
const shapedLine = "shaped:"

// atEnd starts a test of this program once more in the namespace of an end, with a variable of its environment, and passes
// on its lines until it ends with this test. What is written to in it reads.
func atEnd(ctx context.Context, t *testing.T, end int, test, variable string) (out <-chan string, in io.Writer) {
	t.Helper()
	name, _ := shapedNames(end)
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", name, os.Args[0], "-test.run", "^"+test+"$", "-test.v")
	cmd.Env, cmd.Stderr = append(os.Environ(), variable), os.Stderr
	from, err := cmd.StdoutPipe()
	if err == nil {
		in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-done
		_ = cmd.Wait()
	})
	go func() {
		defer close(done)
		defer close(lines)
		for s := bufio.NewScanner(from); s.Scan(); {
			if line, ok := strings.CutPrefix(s.Text(), shapedLine+" "); ok {
				select {
				case lines <- line:
				case <-ctx.Done():
				}
			}
		}
	}()
	return lines, in
}
