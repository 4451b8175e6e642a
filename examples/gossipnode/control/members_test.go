package control

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/status"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestMembersAreDrainedAndExpelled: in a run with a list and a key, which a token tells, its operator has a member leave, which
// saves what it has learned and reports no fault, and expels another, which leaves and is refused when it comes back.
func TestMembersAreDrainedAndExpelled(t *testing.T) {
	t.Parallel()
	key, operatorID := keyFile(t)
	folder, data := t.TempDir(), clitest.Pictures(t, 200, 40)
	secret := filepath.Join(folder, "run.key")
	if code, _, stderr := try("keygen", "--run-key", "--out", secret); code != cli.ExitDone {
		t.Fatal(stderr)
	}
	const peers = 3
	var files, ids [peers]string
	list := operatorID + " # the operator\n"
	for i := range peers {
		files[i], ids[i] = keyFile(t)
		list += ids[i] + "\n"
	}
	var (
		running [peers]sync.WaitGroup
		done    [peers]result.Share
		failed  [peers]error
		addr    = make(chan string, 2*peers)
		trains  = make(chan int, peers)
	)
	allow := func(i int) string { return filepath.Join(folder, "allow"+ids[i]) }
	launch := func(i int, join ...string) {
		if err := os.WriteFile(allow(i), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		var s settings.Settings
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Register(flags)
		if err := flags.Parse([]string{
			"--dataset=mnist", "--data=" + data, "--model=softmax", "--epochs=100000", "--listen=127.0.0.1:0", "--operator=" + operatorID,
			"--key=" + files[i], "--allow=" + allow(i), "--run-key=" + secret, "--name=" + string(rune('a'+i)), "--checkpoint=" + filepath.Join(folder, ids[i]), "--min-peers=1",
		}); err != nil {
			t.Fatal(err)
		}
		s.Join = join
		var first sync.Once
		tell := func(r watch.Report) {
			switch {
			case r.Kind == watch.ReportStarted:
				addr <- r.Addresses[0]
			case r.Kind == watch.ReportProgress && r.Status.Step > 0 && r.Status.Members > 1:
				first.Do(func() { trains <- i })
			}
		}
		running[i].Go(func() { done[i], failed[i] = train.Run(t.Context(), s, train.Observer{Log: zap.NewNop(), Tell: tell}) })
	}
	launch(0)
	first := <-addr
	launch(1, first)
	launch(2, first)
	for range peers {
		<-trains
	}
	invitation := token.Of(settings.DefaultRun, "", []string{first})
	var err error
	if invitation.Secret, err = keys.ReadRun(secret, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	tell := func(want int, words ...string) string {
		t.Helper()
		code, out, stderr := try(append([]string{"control", "--join", invitation.String(), "--operator-key", key, "--timeout", "1m"}, words...)...)
		if code != want {
			t.Fatalf("control %q: exit code %d: %s%s", words, code, out, stderr)
		}
		return out + stderr
	}
	if said := tell(cli.ExitFailed, "drain", "z"); !strings.Contains(said, `0 members of run murmuration called "z"`) {
		t.Error(said)
	}
	var r controlResult
	if err := json.Unmarshal([]byte(tell(cli.ExitDone, "--json", "--reason", "new disks", "drain", ids[1][len(ids[1])-8:])), &r); err != nil || len(r.Standing) != 1 || r.Standing[0].Members[0] != (standingChange{Peer: ids[1], Do: "drain", Since: 1}) || r.Standing[0].Reason != "new disks" {
		t.Errorf("%+v, %v", r, err)
	}
	running[1].Wait()
	saved, err := filepath.Glob(filepath.Join(folder, ids[1], "*.safetensors"))
	if failed[1] != nil || done[1].Result.Steps == 0 || done[1].Unsaved != nil || len(saved) == 0 || err != nil {
		t.Errorf("who is drained: %+v, %v; it keeps %q, %v", done[1].Result, failed[1], saved, err)
	}
	tell(cli.ExitDone, "expel", ids[2])
	running[2].Wait()
	if failed[2] != nil {
		t.Errorf("who is expelled: %v", failed[2])
	}
	clitest.Eventually(t, "it is off the list", func() bool {
		text, err := os.ReadFile(allow(0))
		return err == nil && !strings.Contains(string(text), ids[2]) && strings.Contains(string(text), " # the operator\n")
	})
	clitest.Eventually(t, "it is refused", func() bool {
		_, err := status.Members(t.Context(), settings.Settings{Network: settings.Network{
			Join: []string{first}, Run: settings.DefaultRun, Key: files[2], RunKey: secret,
		}}, zap.NewNop())
		return errors.Is(err, transport.ErrNotAdmitted)
	})
	launch(2, first)
	running[2].Wait()
	if failed[2] == nil || done[2].Result.Steps != 0 {
		t.Errorf("it comes back: %+v, %v", done[2].Result, failed[2])
	}
	if said := tell(cli.ExitDone, "admit", ids[2]); !strings.Contains(said, "3 admit "+ids[2]) || strings.Contains(said, "expel") {
		t.Error(said)
	}
	tell(cli.ExitDone, "site", "a", "Oslo")
	clitest.Eventually(t, "it is at the site", func() bool {
		seen, err := status.Members(t.Context(), settings.Settings{Network: settings.Network{Join: []string{first}, Run: settings.DefaultRun, Key: key, RunKey: secret}}, zap.NewNop())
		return err == nil && slices.ContainsFunc(seen, func(m control.Member) bool { return m.ID == transport.PeerID(ids[0]) && m.Place.Site == "Oslo" })
	})
	tell(cli.ExitDone, "drain", ids[0])
	running[0].Wait()
	if failed[0] != nil {
		t.Error(failed[0])
	}
}

// A member that calls itself by another's id keeps the operator from neither.
func TestWhoIsCalledSo(t *testing.T) {
	seen := []control.Member{{ID: "12D3KooWsecond", Digest: control.Digest{Name: "12D3KooWfirst"}}, {ID: "12D3KooWfirst", Digest: control.Digest{Name: "left"}}, {ID: "12D3KooWthird", Digest: control.Digest{Name: "left"}}}
	for by, want := range map[string]string{"12D3KooWfirst": "12D3KooWfirst", "second": "12D3KooWsecond", "third": "", "oWthird": "12D3KooWthird", "left": "12D3KooWfirst 12D3KooWthird", "nobody": ""} {
		var ids []string
		for _, m := range calledSo(seen, by) {
			ids = append(ids, string(m.ID))
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%q is %q, want %q", by, got, want)
		}
	}
}
