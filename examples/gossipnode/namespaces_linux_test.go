package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// cable is two network namespaces, each a host of its own as far as the network goes,
// and a cable between them.
type cable struct {
	t       *testing.T
	network string // the first three numbers of the addresses
	names   [2]string
	logs    [2]sharedBuffer
}

// address is that of one of the two hosts.
func (c *cable) address(host int) string { return fmt.Sprint(c.network, ".", host+1) }

// lay makes the namespaces, or skips the test where that is not permitted.
func lay(t *testing.T, network string) *cable {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs the program ip to make network namespaces")
	}
	c := &cable{t: t, network: network}
	for host := range c.names {
		c.names[host] = fmt.Sprintf("mm%d-%s-%d", os.Getpid(), network, host)
		if out, err := exec.Command("ip", "netns", "add", c.names[host]).CombinedOutput(); err != nil {
			t.Skipf("needs leave to make network namespaces: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", c.names[host]).Run() })
	}
	c.must("link", "add", "cable", "netns", c.names[0], "type", "veth", "peer", "name", "cable", "netns", c.names[1])
	for host, name := range c.names {
		c.must("-n", name, "address", "add", c.address(host)+"/24", "dev", "cable")
		c.must("-n", name, "link", "set", "lo", "up")
	}
	c.set("up")
	return c
}

func (c *cable) must(args ...string) {
	c.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		c.t.Skipf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// set takes the cable up or down, at both ends.
func (c *cable) set(state string) {
	c.t.Helper()
	for _, name := range c.names {
		c.must("-n", name, "link", "set", "cable", state)
	}
}

// run starts gossipnode on a host. It dies with the test.
func (c *cable) run(host int, args ...string) *exec.Cmd {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	words := append([]string{"netns", "exec", c.names[host]}, humble(os.Args[0], append([]string{"run"}, args...)...)...)
	cmd := exec.CommandContext(ctx, "ip", words...)
	cmd.Env = append(os.Environ(), mainVariable+"=1", "GOMAXPROCS=1")
	cmd.Stderr = &c.logs[host]
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return cmd
}

// scrape reads the metrics that a peer serves within its host only.
func (c *cable) scrape(host int) (found scraped) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends in the other namespace
		at, err := os.Open("/run/netns/" + c.names[host])
		if err != nil {
			return
		}
		defer at.Close()
		if unix.Setns(int(at.Fd()), unix.CLONE_NEWNET) == nil {
			found = scrape(namespaceMetrics)
		}
	}()
	<-done
	return found
}

const namespaceMetrics = "127.0.0.1:9213"

// TestHostsApart: two hosts join over a cable, train, go on when it is pulled until each has
// given the other up, and meet again.
func TestHostsApart(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: lasts for half a minute, nearly all of it waiting")
	}
	t.Parallel()
	c := lay(t, "10.213.77")
	common := []string{
		"--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--model", "softmax", "--batch", "10", "--lr", "0.01",
		"--every", "20", "--epochs", "1000000", "--step-time", "2ms", "--metrics", namespaceMetrics,
	}
	first := c.run(0, append(common, "--listen", c.address(0)+":4213")...)
	second := c.run(1, append(common, "--listen", c.address(1)+":4213", "--join", c.address(0)+":4213")...)
	both := func(what string, holds func(host int, s scraped) bool) {
		t.Helper()
		began := time.Now()
		clitest.Eventually(t, what, func() bool { return holds(0, c.scrape(0)) && holds(1, c.scrape(1)) })
		t.Logf("%s: after %s", what, time.Since(began).Round(time.Millisecond))
	}
	both("they exchange", func(_ int, s scraped) bool { return s.members() == 2 && s.completed() > 0 })
	c.set("down")
	var before [2]scraped
	both("each sees itself alone", func(host int, s scraped) bool { before[host] = s; return s.members() == 1 })
	both("they go on alone", func(host int, s scraped) bool { return s["steps_total"] > before[host]["steps_total"]+20 })
	c.set("up")
	both("they meet again", func(host int, s scraped) bool {
		return s.members() == 2 && s.completed() > before[host].completed()+2
	})
	for host := range before {
		if s := c.scrape(host); s["lost_slices_total"] > 0 || s["quarantined_peers"] > 0 {
			t.Errorf("host %d: %v slices lost, %v peers in quarantine", host, s["lost_slices_total"], s["quarantined_peers"])
		}
	}
	for _, cmd := range []*exec.Cmd{first, second} {
		_ = cmd.Process.Signal(os.Interrupt)
	}
}

// TestWhoCannotBeDialledFindsOut: a peer whose port is closed to the other host learns that
// of the relay there, and is active from then on. The addresses are public ones, since
// AutoNAT asks for no others.
func TestWhoCannotBeDialledFindsOut(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: lasts for 20 s, nearly all of it waiting")
	}
	t.Parallel()
	c := lay(t, "11.213.77")
	common := []string{
		"--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--model", "softmax", "--batch", "10", "--lr", "0.01",
		"--every", "20", "--epochs", "1000000", "--step-time", "2ms", "--metrics", namespaceMetrics, "--verbose",
		"--min-peers", "3", "--min-peers-wait", "16s", // so that they do not train all the time
	}
	relay := c.run(0, append(common, "--listen", c.address(0)+":4213", "--relay-service")...)
	behind := c.run(1, append(common, "--listen", "127.0.0.1:4213", "--join", c.address(0)+":4213")...)
	began := time.Now()
	says := func() bool { return strings.Contains(c.logs[1].String(), "others cannot dial this peer") }
	// Libp2p waits for 15 s before it asks, and for longer if that fails.
	for end := began.Add(75 * time.Second); !says() && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
	}
	clitest.Eventually(t, "the peer that cannot be dialled says so", says)
	t.Logf("found out after %s", time.Since(began).Round(time.Millisecond))
	before := c.scrape(1).completed()
	clitest.Eventually(t, "they exchange", func() bool { return c.scrape(1).completed() > before+2 })
	if strings.Contains(c.logs[0].String(), "others cannot dial this peer") {
		t.Error("the relay, which can be dialled, says otherwise")
	}
	for _, cmd := range []*exec.Cmd{relay, behind} {
		_ = cmd.Process.Signal(os.Interrupt)
	}
}

// TestLocalWhereThereIsOnlyIPv6: the peers of a local run find each other, and the page is
// served, where a machine's own address is ::1 alone.
func TestLocalWhereThereIsOnlyIPv6(t *testing.T) {
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("this kernel has no IPv6")
	}
	t.Parallel()
	c := lay(t, "10.213.78")
	c.must("-n", c.names[0], "address", "del", "127.0.0.1/8", "dev", "lo")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", c.names[0]}, humble(os.Args[0], "local",
		"--peers", "2", "--model", "softmax", "--epochs", "1", "--dashboard", "[::1]:0", "--dashboard-stay", "no")...)...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "2 of 2 peers finished") || !strings.Contains(text, "dashboard at http://[::1]:") {
		t.Errorf("%v:\n%s", err, out)
	}
}
