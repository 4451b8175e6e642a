package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestFlockHolds shows that no peer trains before all can, that one which has
// died keeps nobody, and one that hangs only for holdBound.
func TestFlockHolds(t *testing.T) {
	for name, c := range map[string]struct {
		late func(f *fake) *end // what peer 2 does
		want time.Duration      // when the others begin
	}{
		"late":  {func(f *fake) *end { time.Sleep(5 * time.Second); f.train(); return f.finish() }, 5 * time.Second},
		"dead":  {func(f *fake) *end { time.Sleep(time.Second); return &end{killed: true} }, time.Second},
		"hangs": {func(f *fake) *end { time.Sleep(time.Hour); f.train(); return f.finish() }, holdBound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, waited := time.Now(), make(chan time.Duration, 3)
				l := &fakes{script: func(f *fake) *end {
					if f.number == 2 {
						return c.late(f)
					}
					f.train()
					waited <- time.Since(began)
					return f.finish()
				}}
				if _, _, err := fly(t.Context(), l, nil); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if got := <-waited; got != c.want {
						t.Errorf("a peer began after %s, want %s", got, c.want)
					}
				}
			})
		})
	}
}

// TestFlockRefused shows that a peer whom nobody will have ends the run before
// any has trained, although it and the others have found each other.
func TestFlockRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *end {
			if f.number == 0 {
				f.tell(report{Kind: reportStarted, Addresses: []string{"a"}})
				time.Sleep(time.Second)
				f.tell(report{Kind: reportFailed, Failure: "refused", Code: cli.ExitFailed})
				return &end{err: errors.New("exit status 1")}
			}
			f.ready()
			select {
			case <-f.may:
				t.Errorf("peer %d trains", f.number)
			case <-f.left:
			}
			f.tell(report{Kind: reportFailed, Interrupted: true})
			return &end{}
		}}
		r, _, err := fly(t.Context(), l, nil)
		if r.Peers != 0 || err == nil || err.Error() != "peer 0: refused" || cli.ExitCode(err) != cli.ExitFailed {
			t.Errorf("result %+v, error %v", r, err)
		}
	})
}

// TestIdlePeer shows that a peer which took no step is named.
func TestIdlePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakes{script: func(f *fake) *end {
			f.train()
			if f.number == 1 {
				f.tell(report{Kind: reportResult, Share: &share{}})
				return &end{}
			}
			return f.finish()
		}}
		r, _, err := fly(t.Context(), l, nil)
		if err != nil || !slices.Equal(r.idle, []int{1}) || !strings.Contains(r.summary(), "Peer 1 took no step") {
			t.Errorf("result %+v, error %v, summary:\n%s", r, err, r.summary())
		}
	})
}

// TestLocalJoinsNobody shows that an outside address that answers nothing keeps
// no peer of a local run from training.
func TestLocalJoinsNobody(t *testing.T) {
	t.Parallel()
	var out, logged bytes.Buffer
	cmd := command(t, localArgs(pictures(t, 400, 200), "--peers", "2", "--steps", "200", "--join", "127.0.0.1:9")...)
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	if r := lastLine(t, out.String()); r.Peers != 2 || r.FirstExchangeSeconds == 0 || strings.Contains(logged.String(), "took no step") {
		t.Errorf("%+v\n%s", r, &logged)
	}
}

// TestPlainLines shows that the end of the work is said once, and nothing of
// peers that have ended before they trained.
func TestPlainLines(t *testing.T) {
	var out strings.Builder
	lines := &plainLines{out: &out}
	peers := []*peerState{{phase: phaseDone, status: status{Progress: 1, Elapsed: 1}}, {phase: phaseTraining, status: status{Progress: 1, Elapsed: 1}}}
	for range 3 {
		lines.update(peers)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, othersAtWork) {
		t.Errorf("all work done:\n%s", text)
	}
	out.Reset()
	(&plainLines{out: &out}).update([]*peerState{{phase: phaseLeft}, {phase: phaseLeft}})
	if out.Len() > 0 {
		t.Errorf("nobody is there: %q", &out)
	}
}
