package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestOtherAlgorithmsAreNamed: where peers train by different algorithms, each says once
// of each of the others who it is, what it does, and what is to be done.
func TestOtherAlgorithmsAreNamed(t *testing.T) {
	own := []string{"AllReduce", "AllReduce", "D-PSGD", "AD-PSGD", "a parameter server"}
	synctest.Test(t, func(t *testing.T) {
		logs := make([]*observer.ObservedLogs, len(own))
		flock := peertest.Start(t, peertest.Config{Peers: len(own), Params: newModel, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			switch own[i] {
			case "AllReduce":
				rivals()[0].configure(i, c)
			case "D-PSGD":
				rivals()[1].configure(i, c)
			case "a parameter server":
				(rival{machine: served(func() (baseline.Gate, error) { return baseline.ASP{}, nil })}).configure(i, c)
			}
			core, seen := observer.New(zap.WarnLevel)
			c.Network.Log, logs[i] = zap.New(core), seen
		}})
		time.Sleep(30 * time.Second) // a view changes, and changes, and nothing is said twice
		for i, p := range flock.Peers {
			said := map[string]string{}
			for _, e := range logs[i].FilterMessageSnippet("by another algorithm").All() {
				fields := e.ContextMap()
				id := fields["peer"].(string)
				if _, twice := said[id]; twice {
					t.Errorf("peer %d warns twice of %s", i, id)
				}
				said[id] = fields["its_algorithm"].(string)
				if fields["own_algorithm"] != own[i] {
					t.Errorf("peer %d says that it has %v", i, fields["own_algorithm"])
				}
			}
			for j, other := range flock.Peers {
				if got, want := said[string(other.Self())], own[j]; p != other && own[i] != want && got != want {
					t.Errorf("peer %d says %q of peer %d, want %q", i, got, j, want)
				} else if own[i] == want && got != "" {
					t.Errorf("peer %d warns of peer %d, which trains as it does", i, j)
				}
			}
		}
	})
}
