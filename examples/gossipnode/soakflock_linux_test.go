package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// soakFlock is four processes that a soak disturbs.
type soakFlock struct {
	t      *testing.T
	begun  time.Time
	lasts  time.Duration
	peers  []*soakPeer
	frozen int // who cannot answer, -1 for nobody
	args   []string
	// cutting tells that connections can be cut on this system.
	cutting bool
}

// soakPeer is one of them: a process after the other with the same flags.
type soakPeer struct {
	number          int
	listen, metrics string
	folder          string
	cmd             *exec.Cmd
	logs            *sharedBuffer
	lives           []soakLife
}

// soakLife is what was seen of a process.
type soakLife struct {
	began time.Time
	looks []soakSample
}

// soakSample is what a process answered at a time.
type soakSample struct {
	at time.Time
	scraped
}

func newSoakFlock(t *testing.T, lasts time.Duration) *soakFlock {
	t.Helper()
	const peers = 4
	addresses := freeAddresses(t, 2*peers) // each process comes back to its own
	f := &soakFlock{t: t, lasts: lasts, frozen: -1, cutting: canCut(t), args: []string{
		"run", "--dataset", "mnist", "--data", clitest.Pictures(t, 2000, 200), "--batch", "16", "--lr", "0.001", "--schedule", "constant",
		"--epochs", "100000000", "--every", "10", "--checkpoint-every", "10s", "--log-level", "warn",
	}}
	if !f.cutting {
		t.Log("no connections can be cut here, processes are frozen instead: ss -K needs root and a kernel with INET_DIAG_DESTROY")
	}
	dir := t.TempDir()
	for i := range peers {
		f.peers = append(f.peers, &soakPeer{number: i, listen: addresses[i], metrics: addresses[peers+i], folder: filepath.Join(dir, strconv.Itoa(i))})
		f.args = append(f.args, "--join", addresses[i])
	}
	return f
}

// freeAddresses are so many addresses of which nobody has the port now.
func freeAddresses(t *testing.T, count int) (addresses []string) {
	t.Helper()
	for range count {
		listener, err := net.Listen("tcp", settings.Loopback)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() // all are held until each has its own
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses
}

// start starts a process, with the flags of those before it.
func (f *soakFlock) start(i int) {
	f.t.Helper()
	p := f.peers[i]
	p.cmd = commandWithin(f.t, f.lasts+10*time.Minute, append(f.args,
		"--part", fmt.Sprintf("%d/%d", i, len(f.peers)), "--listen", p.listen, "--metrics", p.metrics, "--checkpoint", p.folder)...)
	p.cmd.Env = append(p.cmd.Env, "GOMAXPROCS=2")
	p.logs = new(sharedBuffer)
	p.cmd.Stderr = p.logs
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	p.lives = append(p.lives, soakLife{began: time.Now()})
}

// look asks all that can answer.
func (f *soakFlock) look() {
	for _, p := range f.peers {
		if p.number != f.frozen {
			p.look()
		}
	}
}

// watch looks again and again for so long.
func (f *soakFlock) watch(lasting time.Duration) {
	for end := time.Now().Add(lasting); ; {
		f.look()
		left := time.Until(end)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, soakLook))
	}
}

func (p *soakPeer) look() {
	if s := scrape(p.metrics); s != nil {
		life := &p.lives[len(p.lives)-1]
		life.looks = append(life.looks, soakSample{time.Now(), s})
	}
}

// last is what the process answered last, nothing if it has not yet.
func (p *soakPeer) last() scraped {
	if looks := p.lives[len(p.lives)-1].looks; len(looks) > 0 {
		return looks[len(looks)-1].scraped
	}
	return scraped{}
}

// cut breaks all connections of a process, and those it makes, for some time. Where the
// system breaks none, it freezes the process instead.
func (f *soakFlock) cut(victim int, lasting time.Duration) {
	if !f.cutting {
		f.freeze(victim, lasting)
		return
	}
	for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err := cutPort(f.peers[victim].listen); err != nil {
			f.t.Fatal(err)
		}
	}
	f.look()
}

// cutPort breaks the TCP connections from and to the port of an address.
func cutPort(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return exec.Command("ss", "-H", "-K", "-t", "state", "established", "( sport = :"+port+" or dport = :"+port+" )").Run()
}

// canCut tells whether this system breaks connections when it is asked to: ss may exit
// with 0 and break none.
func canCut(t *testing.T) bool {
	t.Helper()
	listener, err := net.Listen("tcp", settings.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := cutPort(listener.Addr().String()); err != nil {
		return false
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	_, err = conn.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// exitedWith is the code that a process ended with.
func exitedWith(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}
