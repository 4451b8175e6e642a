package local

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// TestFlockHolds shows that no peer trains before all can, that one which has
// died keeps nobody, and one that hangs only for nine seconds.
func TestFlockHolds(t *testing.T) {
	for name, c := range map[string]struct {
		late func(f *fake) *supervise.End // what peer 2 does
		want time.Duration                // when the others begin
	}{
		"late":  {func(f *fake) *supervise.End { time.Sleep(5 * time.Second); f.train(); return f.finish() }, 5 * time.Second},
		"dead":  {func(f *fake) *supervise.End { time.Sleep(time.Second); return &supervise.End{Killed: true} }, time.Second},
		"hangs": {func(f *fake) *supervise.End { time.Sleep(time.Hour); f.train(); return f.finish() }, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, waited := time.Now(), make(chan time.Duration, 3)
				l := &fakes{script: func(f *fake) *supervise.End {
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
		l := &fakes{script: func(f *fake) *supervise.End {
			if f.number == 0 {
				f.tell(watch.Report{Kind: watch.ReportStarted, Addresses: []string{"a"}})
				time.Sleep(time.Second)
				f.tell(watch.Report{Kind: watch.ReportFailed, Failure: "refused", Code: cli.ExitFailed})
				return &supervise.End{Err: errors.New("exit status 1")}
			}
			f.ready()
			select {
			case <-f.may:
				t.Errorf("peer %d trains", f.number)
			case <-f.left:
			}
			f.tell(watch.Report{Kind: watch.ReportFailed, Interrupted: true})
			return &supervise.End{}
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
		l := &fakes{script: func(f *fake) *supervise.End {
			f.train()
			if f.number == 1 {
				f.tell(watch.Report{Kind: watch.ReportResult, Share: &result.Share{}})
				return &supervise.End{}
			}
			return f.finish()
		}}
		r, _, err := fly(t.Context(), l, nil)
		if err != nil || !slices.Equal(r.Idle, []int{1}) || !strings.Contains(r.String(), "Peer 1 took no step") {
			t.Errorf("result %+v, error %v, summary:\n%s", r, err, r.String())
		}
	})
}
