package status

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// TestFlock compares what is printed of members in several states.
func TestFlock(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	f := flock{run: "digits", members: []control.Member{
		{ID: "12D3KooWAAAAAAAA", Role: topology.Active, State: control.Training, Steps: 1200, Digest: control.Digest{Name: "build-1", Version: "v1.2.0", Loss: 0.25, Received: ago(time.Second), Exchanged: ago(3 * time.Second)}},
		{ID: "12D3KooWBBBBBBBB", Role: topology.Passive, State: control.Over, Steps: 1300, Digest: control.Digest{Loss: math.NaN()}},
		{ID: "x\x1b[2J", State: 77, Steps: 1, Digest: control.Digest{Loss: math.NaN()}},
	}, now: now}
	const want = `digits: 3 members
name     id        role       state     steps  lag   loss    exchange  version
build-1  AAAAAAAA  active     training  1200   100   0.2500  3 s ago   v1.2.0
-        BBBBBBBB  passive    over      1300   0     -       -         -
-        x[2J      undecided  unknown   1      1299  -       -         -
`
	if got := f.table(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	f.members[1].Harm = control.Harm{Partner: "12D3KooWAAAAAAAA", Harm: 1.5, Trust: 0.05}
	f.members[0].Harm = control.Harm{Partner: "12D3KooWBBBBBBBB", Harm: 1.5, Trust: 0.4}
	harmed := []string{"version  harmed by", "v1.2.0   BBBBBBBB, trust 40 %", "-        build-1, trust 5 %", "-"}
	for i, line := range strings.Split(strings.TrimSpace(f.table()), "\n")[1:] {
		if !strings.HasSuffix(line, harmed[i]) {
			t.Errorf("of harm it says %q, want %q", line, harmed[i])
		}
	}
	f.members[1].Place = topology.Place{Site: "Zürich", Uplink: topology.UplinkOf(2.5e6)}
	placed := []string{"version  site    uplink            harmed by", "v1.2.0   -       -                 BBBBBBBB, trust 40 %", "-        Zürich  from 16.4 Mbit/s  build-1, trust 5 %", "-        -       -"}
	for i, line := range strings.Split(strings.TrimSpace(f.table()), "\n")[1:] {
		if !strings.HasSuffix(line, placed[i]) {
			t.Errorf("of places it says %q, want %q", line, placed[i])
		}
	}
	f.alarms = []watch.Alarm{{Peer: "12D3KooWAAAAAAAA", Name: "no-exchange", Since: 5, Text: "no exchange for 3m0s"}}
	if got := f.table(); !strings.HasSuffix(got, "\nalarm: build-1: no exchange for 3m0s\n") {
		t.Errorf("the table is\n%s", got)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"run":"digits"`, `"id":"12D3KooWAAAAAAAA","lag":100,"last_exchange_seconds":3,"loss":0.25,"name":"build-1","role":"active"`,
		`"heard_seconds":1`, `"state":"training","steps":1200`, `"version":"v1.2.0"`, `"last_exchange_seconds":null,"loss":null,"name":""`, `"exchanges":null`,
		`"harm":{"harm":1.5,"partner":"12D3KooWAAAAAAAA","trust":0.05}`, `"harm":null`, `"site":"Zürich"`, `"uplink_mbit":16.384`, `"uplink_mbit":null`,
		`"alarms":[{"peer":"12D3KooWAAAAAAAA","alarm":"no-exchange","since_seconds":5,"text":"no exchange for 3m0s"}]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// TestStatus shows a run to who has its key, and to nobody else, and says what is wrong.
func TestStatus(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.key")
	if err := os.WriteFile(file, []byte(strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := []byte(strings.Repeat("ab", 32))
	open, closed := clitest.Peer(t, peer.Admission{}), clitest.Peer(t, peer.Admission{RunKey: key})
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--join " + open, 0, "murmuration: 1 member"},
		{"--join 127.0.0.1:1 --join " + open, 0, "murmuration: 1 member"},
		{"--join " + closed + " --run-key " + file, 0, "murmuration: 1 member"},
		{"--join " + closed, cli.ExitFailed, "give --run-key"},
		{"--join " + closed, cli.ExitFailed, "the run has a key, which this peer was not given"},
		{"--join " + open + " --run other", cli.ExitFailed, "give --run as it is given there"},
		{"--join 127.0.0.1:1", cli.ExitFailed, "no member reports"},
		{"", cli.ExitUsage, "needs --join"},
		{"--join " + open + " --watch=1ms", cli.ExitUsage, "--watch"},
	} {
		code, out, errs := program.Try(append([]string{"status"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("status %s: code %d, want %d with %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
	code, out, errs := program.Try("status", "--join", open, "--json")
	var f struct {
		Run     string
		Members []struct{ ID, State string }
	}
	if err := json.Unmarshal([]byte(out), &f); code != 0 || err != nil || f.Run != "murmuration" || len(f.Members) != 1 || !strings.HasPrefix(f.Members[0].ID, "12D3KooW") || f.Members[0].State != "joining" && f.Members[0].State != "training" {
		t.Errorf("code %d, %v: %s%s", code, err, out, errs)
	}
}

// TestAllAlarms: whatever a member raises, status shows it at once, though it asks another.
func TestAllAlarms(t *testing.T) {
	join := func(config control.Config, to ...string) *peer.Node {
		n, err := peer.Join(t.Context(), peer.Network{Run: "murmuration", Listen: []string{"127.0.0.1:0"}, Join: to, Control: config})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	asked := join(control.Config{Digests: control.DigestSpacing})
	told := join(control.Config{Name: "ill", Digests: control.DigestSpacing}, asked.JoinAddresses()...)
	told.Raise(0b111111)
	deadline := time.Now().Add(time.Minute)
	names := func() (names []string) {
		code, out, errs := program.Try("status", "--join", asked.JoinAddresses()[0], "--json")
		var f struct {
			Alarms []struct{ Peer, Alarm string }
		}
		if err := json.Unmarshal([]byte(out), &f); code != 0 || err != nil {
			t.Fatalf("code %d, %v: %s%s", code, err, out, errs)
		}
		for _, a := range f.Alarms {
			if a.Peer != string(told.Self()) {
				t.Errorf("%s of %s", a.Alarm, a.Peer)
			}
			names = append(names, a.Alarm)
		}
		return names
	}
	for len(names()) == 0 && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	if got := strings.Join(names(), " "); got != "accuracy-falls checkpoint-old distance-grows no-exchange over-budget peer-lost" {
		t.Errorf("alarms %q", got)
	}
	if _, out, _ := program.Try("status", "--join", asked.JoinAddresses()[0]); !strings.Contains(out, "alarm: ill: the last checkpoint is old\n") {
		t.Errorf("it says\n%s", out)
	}
}

// TestWatch shows that it looks again and again until it is interrupted, which is no failure.
func TestWatch(t *testing.T) {
	cmd := clitest.Command(t, 3*time.Minute, "status", "--join", clitest.Peer(t, peer.Admission{}), "--watch=1s", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := clitest.ScanLines(t, out)
	for range 2 {
		if line := <-lines; !strings.Contains(line, `"id":"12D3KooW`) {
			t.Errorf("it says %q", line)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// late is a transport that notes how many addresses were dialled with time left.
type late struct {
	transport.Transport
	inTime int
}

func (l *late) Connect(ctx context.Context, address string) (transport.PeerID, error) {
	if ctx.Err() == nil {
		l.inTime++
	}
	return l.Transport.Connect(ctx, address)
}

// TestAddressesThatSwallowAllLeaveTimeForTheNext, as those of a token do that lead nowhere from here.
func TestAddressesThatSwallowAllLeaveTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		var all []*memnet.Transport
		var s settings.Settings
		for _, name := range []string{"outside", "a", "b", "c"} {
			tr, err := n.Transport(name)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			all, s.Join = append(all, tr), append(s.Join, tr.Addresses()...)
		}
		s.Join = s.Join[1:]
		n.Cut(all[0].Self(), all[1].Self())
		n.Cut(all[0].Self(), all[2].Self())
		asked := &late{Transport: all[0]}
		if _, err := look(t.Context(), s, peer.Admission{}, asked); err == nil || asked.inTime < len(s.Join) {
			t.Errorf("%d of %d were asked in time: %v", asked.inTime, len(s.Join), err)
		}
	})
}
