package train

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// settingsOf are the settings of a command line of run.
func settingsOf(t *testing.T, args ...string) (s settings.Settings) {
	t.Helper()
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
		from, err := s.Load(cmd)
		if err == nil {
			err = s.Validate(from)
		}
		return err
	}}
	s.Register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNormalizedByTheFlock: peers with other pictures each normalize them by the mean and deviation
// of all, train in the same run, keep that with their checkpoints, and go on with it.
func TestNormalizedByTheFlock(t *testing.T) {
	t.Parallel()
	folders := []string{clitest.Pictures(t, 64, 20), clitest.Pictures(t, 200, 20)}
	for _, name := range []string{"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"} {
		data, err := os.ReadFile(filepath.Join(folders[0], name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folders[1], name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var sums []float64
	for _, dir := range folders {
		levels, err := dataset.Levels(t.Context(), dataset.Config{Name: "mnist", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, make([]float64, len(levels)-len(sums))...)
		for i, n := range levels {
			sums[i] += n
		}
	}
	norm, err := dataset.NormOf(sums)
	if err != nil {
		t.Fatal(err)
	}
	peers := make([]settings.Settings, 2)
	for i, dir := range folders {
		peers[i] = settingsOf(t, "--dataset=mnist", "--data="+dir, "--model=softmax", "--steps=10", "--listen=127.0.0.1:0", "--min-peers=2", "--normalize=flock", "--checkpoint="+t.TempDir())
	}
	begun := make(chan []string, 4)
	core, logs := observer.New(zap.WarnLevel)
	run := func(s settings.Settings) {
		done, err := Run(t.Context(), s, Observer{Log: zap.New(core), Tell: func(r watch.Report) {
			if r.Kind == watch.ReportStarted && r.Addresses != nil {
				begun <- r.Addresses
			}
		}})
		if err != nil {
			t.Error(err)
			begun <- nil
		}
		if r := done.Result; r.Peers != 2 || r.Steps < 5 || r.PeersLost > 0 {
			t.Errorf("%d steps among %d, of whom it lost %d", r.Steps, r.Peers, r.PeersLost)
		}
	}
	var all sync.WaitGroup
	all.Go(func() { run(peers[0]) })
	peers[1].Join = <-begun
	all.Go(func() { run(peers[1]) })
	all.Wait()
	if len(begun) != 1 { // the second's
		t.Errorf("%d more addresses were told: who has summed trains in the same run, at the same port", len(begun)-1)
	}
	for _, line := range logs.All() {
		t.Errorf("%s %v", line.Message, line.Context)
	}
	for _, s := range peers {
		again := &preparing{Settings: &s}
		if err := again.normalize(t.Context()); err != nil || s.Normalize != dataset.FormatNorm(norm) {
			t.Errorf("normalized by %s, want %s: %v", s.Normalize, dataset.FormatNorm(norm), err)
		}
	}
	alone := settingsOf(t, "--dataset=mnist", "--data="+folders[0], "--normalize=flock", "--strategy=alone")
	if err := (&preparing{Settings: &alone}).normalize(t.Context()); err != nil || !strings.Contains(alone.Normalize, "/") || alone.Normalize == dataset.FormatNorm(norm) {
		t.Errorf("alone: %s, %v", alone.Normalize, err)
	}
}
