package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// scraped are the metrics of a peer by name and labels, as they stand on its page.
type scraped map[string]float64

// scrape reads the metrics at an address; nil if nobody answers in time.
func scrape(address string) scraped {
	const patience = 2 * time.Second
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		return nil
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return nil
	}
	found := scraped{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			if value, err := strconv.ParseFloat(fields[1], 64); err == nil {
				found[strings.TrimPrefix(fields[0], "murmuration_")] = value
			}
		}
	}
	return found
}

// sum adds up a metric over those of its labels that hold a text.
func (s scraped) sum(metric, label string) (total float64) {
	for name, value := range s {
		if strings.HasPrefix(name, metric+"{") && strings.Contains(name, label) {
			total += value
		}
	}
	return total
}

func (s scraped) members() float64   { return s.sum("members", "") }
func (s scraped) completed() float64 { return s.sum("exchanges_total", `outcome="completed"`) }
func (s scraped) failed() float64    { return s.sum("exchanges_total", `outcome="failed"`) }

// metricsOf is the address at which a process serves its metrics.
func metricsOf(t *testing.T, process int) string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, "--metrics="); ok {
			return value
		}
		if word == "--metrics" && i+1 < len(words) {
			return words[i+1]
		}
	}
	t.Fatalf("no --metrics in %q", words)
	return ""
}

// TestAFrozenProcess: one of four processes is stopped, and goes on some time later.
// The others take steps and complete exchanges all the while, each loses at most a few
// exchanges with it, and it comes back without harm, and shows for how long it was away.
func TestAFrozenProcess(t *testing.T) {
	t.Parallel()
	const peers = 4
	cmd, children, _ := longRunOf(t, peers, "--epochs", "1000000", "--step-time", "2ms", "--metrics", fmt.Sprint("127.0.0.1:", freePorts(t, peers)))
	frozen, others := children[peers-1], children[:peers-1]
	look := func(process int) scraped { return scrape(metricsOf(t, process)) }
	clitest.Eventually(t, "all exchange", func() bool {
		for _, child := range children {
			if s := look(child); s.members() != peers || s.completed() == 0 {
				return false
			}
		}
		return true
	})
	before := map[int]scraped{}
	for _, child := range others {
		before[child] = look(child)
	}
	stopped := time.Now()
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(frozen, syscall.SIGCONT) })
	clitest.Eventually(t, "the others go on, and know that one is missing", func() bool {
		return !slices.ContainsFunc(others, func(child int) bool {
			s := look(child)
			return s.members() != peers-1 || s["steps_total"] < before[child]["steps_total"]+20 || s.completed() < before[child].completed()+2
		})
	})
	for _, child := range others {
		s := look(child)
		// Gossip needs some seconds to call it dead, on a busy machine more. In that time, a
		// partner that is passed over is tried again once or twice.
		took := time.Since(stopped)
		if lost := s.failed() - before[child].failed(); lost > 4+took.Seconds()/10 {
			t.Errorf("a peer lost %v exchanges with a partner frozen for %s", lost, took)
		}
		before[child] = s
	}
	before[frozen] = scraped{}
	stood := time.Since(stopped).Seconds()
	if err := syscall.Kill(frozen, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "it answers", func() bool { before[frozen] = look(frozen); return before[frozen] != nil })
	clitest.Eventually(t, "it shows for how long it stood still, most likely within a gradient", func() bool {
		return look(frozen)["trainer_hold_longest_seconds"] >= stood-1
	})
	clitest.Eventually(t, "all are together again", func() bool {
		return !slices.ContainsFunc(children, func(child int) bool {
			s := look(child)
			return s.members() != peers || s.completed() < before[child].completed()+2
		})
	})
	for _, child := range children {
		if s := look(child); s["lost_slices_total"] > 0 || s["quarantined_peers"] > 0 {
			t.Errorf("%v slices lost, %v peers in quarantine", s["lost_slices_total"], s["quarantined_peers"])
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	clitest.CheckGone(t, children)
}
