package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
)

// described is a run that somebody has begun.
func described() (fields []description.Field) {
	for _, f := range [][2]string{{"dataset", "mnist"}, {"model", "mlp"}, {"work", "5 steps"}, {"lr", "0.01"}, {"seed", "1"}, {"optimizer", "momentum"}, {"batch", "10"}} {
		fields = append(fields, description.Field{Name: f[0], Value: f[1], Local: f[0] == "batch"})
	}
	return fields
}

// TestATokenAndDataJoinARun: nothing else has to be given, and both train the same.
func TestATokenAndDataJoinARun(t *testing.T) {
	t.Parallel()
	data := clitest.Pictures(t, 40, 20)
	var out bytes.Buffer
	founder := command(t, "run", "--listen", settings.Loopback, "--dataset", "mnist", "--data", data, "--batch", "10", "--steps", "20", "--lr", "0.02", "--min-peers", "2", "--json")
	founder.Stdout = &out
	logs, err := founder.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := founder.Start(); err != nil {
		t.Fatal(err)
	}
	invitation := ""
	lines := clitest.ScanLines(t, logs)
	for line := range lines {
		if _, text, ok := strings.Cut(line, "--join murmuration1"); ok {
			invitation = "murmuration1" + text
			break
		}
	}
	go func() {
		for range lines {
		}
	}()
	code, joined, logged := try("run", "--listen", settings.Loopback, "--join", invitation, "--data", data, "--json")
	if err := founder.Wait(); err != nil {
		t.Errorf("the founder: %v", err)
	}
	a, b := lastLine(t, out.String()), lastLine(t, joined)
	if code != cli.ExitDone || !strings.Contains(logged, "as in the run that is joined: dataset mnist, ") || b.Dataset != "mnist" || a.Exchanges+b.Exchanges == 0 || !a.Joined || !b.Joined {
		t.Errorf("exit code %d: %+v, the founder %+v\n%s", code, b, a, logged)
	}
}

// TestTokensThatAreNoneAreRefused: whole ones only, and of this run.
func TestTokensThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	address := clitest.Peer(t, peer.Admission{}, described()...)
	code, out, logged := try("invite", "--join", address, "--json")
	var invited struct {
		Token, Run string
		Addresses  []string
	}
	clitest.LastLine(t, out, &invited)
	if code != cli.ExitDone || invited.Run != "murmuration" || len(invited.Addresses) != 1 || invited.Addresses[0] != address {
		t.Fatalf("exit code %d: %+v\n%s", code, invited, logged)
	}
	if code, _, logged = try("run", "--join", invited.Token[:len(invited.Token)-3]); code != cli.ExitUsage || !strings.Contains(logged, "no whole token") {
		t.Errorf("half of a token: exit code %d\n%s", code, logged)
	}
	if code, _, logged = try("run", "--join", invited.Token, "--run", "other"); code != cli.ExitUsage || !strings.Contains(logged, `"other", but the token is one of "murmuration"`) {
		t.Errorf("another run: exit code %d\n%s", code, logged)
	}
	other := token.Of("other", "12D3KooW", []string{"/ip4/127.0.0.1/tcp/1"}).String()
	if code, _, logged = try("run", "--join", invited.Token, "--join", other); code != cli.ExitUsage || !strings.Contains(logged, "tokens of two runs") {
		t.Errorf("tokens of two runs: exit code %d\n%s", code, logged)
	}
	if code, _, logged = try("invite", "--join", "127.0.0.1:1"); code != cli.ExitFailed || !strings.Contains(logged, "making a token") {
		t.Errorf("nobody there: exit code %d\n%s", code, logged)
	}
}

// TestContradictionsEndBeforeTheFirstStep: run names each field that differs, and doctor too.
func TestContradictionsEndBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	address := clitest.Peer(t, peer.Admission{}, described()...)
	args := []string{"--listen", settings.Loopback, "--join", address, "--dataset", "glyphs", "--lr", "0.5", "--batch", "8"}
	code, _, logged := try(append([]string{"run"}, args...)...)
	for _, want := range []string{"dataset is glyphs here and mnist there: leave out --dataset", "lr is 0.5 here and 0.01 there: leave out --lr"} {
		if code != cli.ExitUsage || !strings.Contains(logged, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, logged)
		}
	}
	if strings.Contains(logged, "batch is") {
		t.Errorf("what is a peer's own to choose is refused:\n%s", logged)
	}
	code, out, _ := try(append([]string{"doctor", "--json"}, args...)...)
	var found struct{ Differences []description.Difference }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	if code != cli.ExitFailed || len(found.Differences) != 3 || found.Differences[1] != (description.Difference{Field: "dataset", Here: "glyphs", There: "mnist"}) {
		t.Errorf("exit code %d: %+v", code, found)
	}
	glyphs := description.Field{Name: "held-out data", Value: "00"}
	code, _, logged = try("run", "--listen", settings.Loopback, "--join", clitest.Peer(t, peer.Admission{}, glyphs))
	if code != cli.ExitFailed || !strings.Contains(logged, "held-out data is") {
		t.Errorf("what no flag of the user's is at fault of: exit code %d\n%s", code, logged)
	}
	large := []description.Field{{Name: "dataset", Value: "gosource"}, {Name: "model", Value: "gpt"}, {Name: "layers", Value: "64"}, {Name: "width", Value: "4096"}}
	code, _, logged = try("run", "--listen", settings.Loopback, "--join", clitest.Peer(t, peer.Admission{}, large...))
	if code != cli.ExitConfig || !strings.Contains(logged, "the run that is joined asks for about 4") {
		t.Errorf("with a model of %d layers: exit code %d\n%s", 64, code, logged)
	}
	other := append(described(), description.Field{Name: "held-out data", Value: "00"})
	code, _, logged = try("run", "--listen", settings.Loopback, "--join", clitest.Peer(t, peer.Admission{}, other...), "--data", clitest.Pictures(t, 40, 20))
	if code != cli.ExitUsage || !strings.Contains(logged, "held-out data is") || !strings.Contains(logged, "give the data that the others have") {
		t.Errorf("with other data of that name: exit code %d\n%s", code, logged)
	}
}

// TestNeverJoinedIsNoSuccess: a peer that was to join others and has reached nobody says so at
// the end, by a line, a field and its exit code; unless that is as it should be.
func TestNeverJoinedIsNoSuccess(t *testing.T) {
	t.Parallel()
	args := []string{"run", "--listen", settings.Loopback, "--dataset", "mnist", "--data", clitest.Pictures(t, 40, 20), "--batch", "10", "--steps", "3", "--join-wait", "0s", "--json"}
	for _, c := range []struct {
		more []string
		code int
	}{{nil, cli.ExitDone}, {[]string{"--join", "127.0.0.1:1"}, result.ExitNeverJoined}, {[]string{"--join", "127.0.0.1:1", "--alone-ok"}, cli.ExitDone}} {
		code, out, logged := try(append(args, c.more...)...)
		if r := lastLine(t, out); code != c.code || r.Joined || r.Steps != 3 {
			t.Errorf("%q: exit code %d: %+v", c.more, code, r)
		}
		if said := strings.Contains(logged, "NEVER JOINED: nobody at 127.0.0.1:1"); said != (c.code == result.ExitNeverJoined) {
			t.Errorf("%q: %s", c.more, logged)
		}
	}
}
