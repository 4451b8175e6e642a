package doctor

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
)

// diagnose runs doctor --json on loopback and returns what was found, by what was
// checked, and the exit code.
func diagnose(t *testing.T, args ...string) (map[string]diagnosis, int) {
	t.Helper()
	code, out, stderr := try(append([]string{"doctor", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	var printed struct {
		Checks         []diagnosis
		OK, Warn, Fail int
	}
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		t.Fatalf("%v: %q, %s", err, out, stderr)
	}
	found, count := map[string]diagnosis{}, map[string]int{}
	for _, d := range printed.Checks {
		found[d.What] = d
		count[d.Level]++
		if d.Finding == "" || (d.Level == levelOK) != (d.Remedy == "") {
			t.Errorf("%+v: every check finds something, and every fault has a remedy", d)
		}
		if !strings.Contains(stderr, d.Finding) {
			t.Errorf("no line on standard error has %q", d.Finding)
		}
	}
	if count[levelOK] != printed.OK || count[levelWarn] != printed.Warn || count[levelFail] != printed.Fail {
		t.Errorf("%d ok, %d warn and %d fail of %v", printed.OK, printed.Warn, printed.Fail, printed.Checks)
	}
	if want := map[bool]int{false: cli.ExitDone, true: cli.ExitFailed}[printed.Fail > 0]; code != want {
		t.Errorf("exit code %d with %d that fail", code, printed.Fail)
	}
	return found, code
}

// TestDoctor asks a real peer in every way that could go wrong.
func TestDoctor(t *testing.T) {
	address := clitest.Peer(t, peer.Admission{})
	id := address[strings.LastIndex(address, "/")+1:]
	plain := "127.0.0.1:" + strings.Split(address, "/")[4]
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	other := strings.Replace(address, id, "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA", 1)
	for _, c := range []struct {
		name   string
		args   []string
		what   string
		level  string
		says   string
		remedy string
	}{
		{"all is well", []string{"--join", address}, "layout", levelOK, "the model there is mlp", ""},
		{"the same run", []string{"--join", plain}, "run", levelOK, `takes part in "murmuration"`, ""},
		{"the window", []string{"--join", plain}, "window", levelOK, "on 4 connections to " + plain, ""},
		{"another model", []string{"--join", plain, "--model", "softmax"}, "layout", levelFail, "has another model than softmax", "--model"},
		{"another run", []string{"--join", plain, "--run", "letters"}, "run", levelFail, `takes no part in "letters"`, "--run"},
		{"images", []string{"--join", plain, "--dataset", "images", "--data", t.TempDir()}, "layout", levelOK, "not compared", ""},
		{"nobody there", []string{"--join", "127.0.0.1:1"}, "join", levelFail, "refused", "firewall"},
		{"a web server there", []string{"--join", strings.TrimPrefix(web.URL, "http://")}, "join", levelFail, "no peer answers there", "not of --metrics"},
		{"another identity", []string{"--join", other}, "join", levelFail, id, "ask who runs"},
		{"nobody to join", nil, "join", levelOK, "begin a run", ""},
		{"a free port", nil, "ports", levelOK, "changes each time", ""},
		{"a port that is taken", []string{"--listen", plain}, "ports", levelFail, "cannot listen on " + plain, "another address or port"},
		{"a port given twice", []string{"--listen", "127.0.0.1:45431", "--listen", "127.0.0.1:45431"}, "ports", levelFail, "all of them at once", "each port once"},
		{"loopback only", []string{"--join", "nowhere.invalid:1"}, "addresses", levelWarn, "this machine only", "0.0.0.0"},
		{"loopback among itself", []string{"--join", plain}, "addresses", levelOK, "this machine only", ""},
		{"no key", nil, "key", levelOK, "a new identity each time", ""},
		{"the clock", nil, "clock", levelOK, "needs clocks that agree", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, _ := diagnose(t, c.args...)
			if d := found[c.what]; d.Level != c.level || !strings.Contains(d.Finding, c.says) || !strings.Contains(d.Remedy, c.remedy) {
				t.Errorf("%+v, want %s, %q and a remedy with %q", d, c.level, c.says, c.remedy)
			}
		})
	}
}

// TestDoctorLooksAtTheKey shows that a key which others can read, or that is none,
// is complained of, and that identities are not remembered by asking.
func TestDoctorLooksAtTheKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	if found, _ := diagnose(t, "--key", path); found["key"].Level != levelFail || !strings.Contains(found["key"].Remedy, "keygen --out "+path) {
		t.Errorf("a key that is not there: %+v", found["key"])
	}
	if _, err := keys.Generate(path, false); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o600: levelOK, 0o400: levelOK, 0o644: levelWarn, 0o660: levelWarn} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "windows" {
			want = levelOK
		}
		found, _ := diagnose(t, "--key", path)
		if d := found["key"]; d.Level != want || want != levelOK && !strings.Contains(d.Remedy, "chmod 600") {
			t.Errorf("mode %o: %+v, want %s", mode, d, want)
		}
	}
	plain := "127.0.0.1:" + strings.Split(clitest.Peer(t, peer.Admission{}), "/")[4]
	if found, _ := diagnose(t, "--key", path, "--join", plain); found["join"].Level != levelOK {
		t.Errorf("%+v", found["join"])
	}
	if _, err := os.Stat(path + keys.KnownSuffix); err == nil {
		t.Error("asking has remembered an identity")
	}
	known := plain + " 12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA\n"
	if err := os.WriteFile(path+keys.KnownSuffix, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, _ := diagnose(t, "--key", path, "--join", plain); found["join"].Level != levelFail || !strings.Contains(found["join"].Finding, path+keys.KnownSuffix) {
		t.Errorf("an address with another identity than is known: %+v", found["join"])
	}
	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, _ := diagnose(t, "--key", path); found["key"].Level != levelFail {
		t.Errorf("a file that is no key: %+v", found["key"])
	}
}

// TestDoctorLooksBesideTheCheckpoints shows that doctor asks as the peer that run is with
// --checkpoint and without --key, and makes neither its folder nor its identity.
func TestDoctorLooksBesideTheCheckpoints(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "kept")
	path := filepath.Join(folder, "node.key")
	if found, _ := diagnose(t, "--checkpoint", folder); found["key"].Level != levelOK || !strings.Contains(found["key"].Finding, path) {
		t.Errorf("before the first run: %+v", found["key"])
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("doctor has made the folder")
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := keys.Generate(path, false)
	if err != nil {
		t.Fatal(err)
	}
	list := clitest.WriteFile(t, "allowed", string(id)+"\n")
	plain := "127.0.0.1:" + strings.Split(clitest.Peer(t, peer.Admission{Allow: list}), "/")[4]
	found, code := diagnose(t, "--checkpoint", folder, "--join", plain)
	if code != cli.ExitDone || found["layout"].Level != levelOK || found["key"].Finding != path+" is sound and its owner's only" {
		t.Errorf("exit code %d, %+v", code, found)
	}
	if _, code := diagnose(t, "--join", plain); code != cli.ExitFailed {
		t.Error("a peer that is not on the list is let in")
	}
}

// TestDoctorLooksAtTheAdmission shows that files which run would refuse are named, whether
// or not there is somebody to join.
func TestDoctorLooksAtTheAdmission(t *testing.T) {
	short := clitest.WriteFile(t, "run.key", "short")
	for _, c := range [][]string{{"--run-key", short, "keygen --run-key"}, {"--allow", short + ".none", "the id of a peer in each line"}} {
		if found, code := diagnose(t, c[:2]...); code != cli.ExitFailed || found["admission"].Level != levelFail || !strings.Contains(found["admission"].Remedy, c[2]) {
			t.Errorf("%v: exit code %d, %+v", c, code, found["admission"])
		}
	}
}

// TestDoctorSpeaksForItself shows that libp2p's own log is not among what doctor prints.
func TestDoctorSpeaksForItself(t *testing.T) {
	var said strings.Builder
	cmd := clitest.Command(t, 3*time.Minute, "doctor", "--listen", settings.Loopback, "--join", "127.0.0.1:1")
	cmd.Env = append(cmd.Environ(), "GOLOG_LOG_LEVEL=debug")
	cmd.Stderr = &said
	if out, _ := cmd.Output(); !strings.Contains(string(out), "ok    clock") || said.String() != "gossipnode: "+errUnhealthy.Error()+"\n" {
		t.Errorf("standard output %q, standard error %.300q", out, said.String())
	}
}

// TestDoctorIsBounded shows that an address which takes connections and says nothing
// holds the doctor up no longer than its context allows, and is named.
func TestDoctorIsBounded(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var s settings.Settings
	cmd := &cobra.Command{Use: "doctor"}
	s.Register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	if err := cmd.ParseFlags([]string{"--listen", "127.0.0.1:0", "--join", silent.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	from, err := s.Load(cmd)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // instead of doctorTimeout
	defer cancel()
	var join diagnosis
	for _, d := range examine(ctx, s, from) {
		if d.What == "join" {
			join = d
		}
	}
	if join.Level != levelFail || !strings.Contains(join.Finding, silent.Addr().String()) {
		t.Errorf("%+v", join)
	}
}

func TestWindowBound(t *testing.T) {
	sizes := func(rmem, wmem string) func(string) string {
		return func(name string) string {
			return map[string]string{"net.ipv4.tcp_rmem": rmem, "net.ipv4.tcp_wmem": wmem}[name]
		}
	}
	const large = "4096 131072 33554432"
	for _, c := range []struct {
		name, says, remedy string
		round              time.Duration
		read               func(string) string
	}{
		{"no settings", "up to 336 Mbit/s", "", 100 * time.Millisecond, sizes("", "")},
		{"large buffers", "4.0 MiB in flight at most (the window of a stream): up to 336 Mbit/s", "", 100 * time.Millisecond, sizes(large, large)},
		{"near", "10 Gbit/s and more", "", time.Millisecond, sizes(large, large)},
		{"not far", "up to 3.4 Gbit/s", "", 10 * time.Millisecond, sizes(large, large)},
		{"far", "up to 67 Mbit/s on one connection", "--lanes 8", 500 * time.Millisecond, sizes(large, large)},
		{"small buffers, far", "0.2 MiB in flight at most (net.ipv4.tcp_wmem): up to 9 Mbit/s", "raise the last number of net.ipv4.tcp_wmem to 8388608", 200 * time.Millisecond, sizes(large, "4096 16384 425984")},
		{"garbled", "up to 336 Mbit/s", "", 100 * time.Millisecond, sizes("a b c", "1 2")},
	} {
		d := checkWindow(settings.Settings{Network: settings.Network{Lanes: 1}}, c.round, "", c.read)
		if !strings.Contains(d.Finding, c.says) || !strings.Contains(d.Remedy, c.remedy) || (d.Level == levelOK) != (c.remedy == "") {
			t.Errorf("%s: %+v, want %q and %q", c.name, d, c.says, c.remedy)
		}
	}
	if d := checkWindow(settings.Settings{}, 200*time.Millisecond, "", sizes(large, large)); d.Level != levelOK || !strings.Contains(d.Finding, "up to 671 Mbit/s on 4 connections") {
		t.Errorf("with as many lanes as the link asks for: %+v", d)
	}
	lanes := settings.Settings{Network: settings.Network{Lanes: 8}}
	if d := checkWindow(lanes, 500*time.Millisecond, "", sizes(large, large)); d.Level != levelOK || !strings.Contains(d.Finding, "up to 537 Mbit/s on 8 connections") {
		t.Errorf("with eight lanes: %+v", d)
	}
}

func TestReachOfAddresses(t *testing.T) {
	for address, want := range map[string]int{
		"127.0.0.1:1": reachHere, "/ip6/::1/tcp/1": reachHere, "10.1.2.3:1": reachNetwork, "/ip4/192.168.0.9/tcp/1": reachNetwork,
		"100.64.0.1:1": reachNetwork, "[fd00::1]:1": reachNetwork, "8.8.8.8:1": reachWorld, "/ip6/2600::1/tcp/1/p2p/x": reachWorld,
		"seed.example.org:4001": reachWorld, "/dns/seed.example.org/tcp/1": reachWorld,
	} {
		if kind, reach := reachOf(address); reach != want {
			t.Errorf("%s is %s, %d, want %d", address, kind, reach, want)
		}
	}
	if d := checkClock(time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)); d.Level != levelWarn {
		t.Errorf("a clock that was never set: %+v", d)
	}
	if d := checkAddresses(settings.Settings{}, []string{"/ip4/10.0.0.1/tcp/1"}); d.Level != levelWarn || !strings.Contains(d.Remedy, "forward") || !strings.Contains(d.Remedy, "--unreachable") {
		t.Errorf("a private address: %+v", d)
	}
	if d := checkAddresses(settings.Settings{Network: settings.Network{Unreachable: settings.UnreachableYes}}, []string{"/ip4/10.0.0.1/tcp/1"}); d.Level != levelOK {
		t.Errorf("a private address of a peer that need not be dialled: %+v", d)
	}
}

// TestDoctorKnowsLayouts holds the shapes that the doctor assumes against the data.
func TestDoctorKnowsLayouts(t *testing.T) {
	data, err := dataset.Load(t.Context(), dataset.Config{Name: "glyphs", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	model, err := nets.ByName("cnn", data.Shape(), data.Classes())
	if err != nil {
		t.Fatal(err)
	}
	var s settings.Settings
	s.Dataset, s.Model = "glyphs", "cnn"
	if hash, known := layout(s); !known || hash != model.Layout().Hash() {
		t.Error("the layout for glyphs is not that of run")
	}
}
