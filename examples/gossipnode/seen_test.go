package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
)

// picture is what a dashboard says of a run, and status too.
type picture struct {
	State struct {
		State   string
		Over    bool
		Final   *result.Result
		Tell    int
		Matrix  [][3]int
		Members []memberSeen
	}
	Members []memberSeen
}

type memberSeen struct {
	ID, Name, Role string
	State          string
	Steps          uint64
	Loss           *float64
}

// names are those of members whose row is filled, with their roles.
func names(members []memberSeen) (filled map[string]string) {
	filled = make(map[string]string)
	for _, m := range members {
		if m.Name != "" && m.Steps > 0 && m.Loss != nil {
			filled[m.Name] = m.Role
		}
	}
	return filled
}

// onePeer starts a process of run; what it says of where it is goes to a channel.
func onePeer(t *testing.T, result *bytes.Buffer, operator, name string, args ...string) (cmd *exec.Cmd, says <-chan string) {
	t.Helper()
	args = append([]string{"run", "--listen", "127.0.0.1:0", "--model", "softmax", "--steps", "1000000", "--step-time", "2ms", "--every", "20", "--codec", "bf16", "--json", "--name", name, "--operator", operator}, args...)
	cmd = clitest.Command(t, 2*time.Minute, args...)
	cmd.Stdout = result
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, clitest.ScanLines(t, errs)
}

// find waits for a line that fits, and lets the others go by for as long as there are any.
func find(t *testing.T, says <-chan string, pattern string) (found string) {
	t.Helper()
	fits := regexp.MustCompile(pattern)
	for line := range says {
		if m := fits.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	t.Fatalf("no line fits %s", pattern)
	return ""
}

// TestThreeRunsAreSeen: of three processes of run, the dashboard of one shows who all are,
// how each gets on and who met whom; status of another says the same; and the page stays
// with all three after the end. It takes some seconds: peers tell of themselves once a second.
func TestThreeRunsAreSeen(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out by -short: three processes train for some seconds")
	}
	key := filepath.Join(t.TempDir(), "operator.key")
	operator, err := keys.Generate(key, false)
	if err != nil {
		t.Fatal(err)
	}
	var last bytes.Buffer
	first, says := onePeer(t, &last, operator, "first", "--dashboard", "127.0.0.1:0", "--dashboard-stay", "yes", "--operator-key", key, "--min-peers", "3")
	invited := find(t, says, `--join (\S+)`)
	where, err := token.Parse(invited)
	if err != nil {
		t.Fatal(err)
	}
	url := find(t, says, `dashboard at (\S+)$`)
	go drain(says)
	clitest.Eventually(t, "one of three that waits for the others", func() bool { // the page is there before the peer has joined
		seen := look(t, url).State
		return seen.State == "waiting" && seen.Members[0].State == "waiting"
	})
	photograph(t, url, "waiting", 1)
	var others []*exec.Cmd
	var results [2]bytes.Buffer
	for i, name := range []string{"second", "third"} {
		other, says := onePeer(t, &results[i], operator, name, "--join", invited, "--digests", "1s")
		go drain(says)
		others = append(others, other)
	}
	var seen picture
	clitest.Eventually(t, "three filled rows", func() bool {
		seen = look(t, url)
		roles := slices.Collect(maps.Values(names(seen.State.Members)))
		return seen.State.Tell == 3 && len(roles) == 3 && !slices.Contains(roles, "undecided") && len(seen.State.Matrix) > 0
	})
	photograph(t, url, "training", 3)
	var told picture
	code, out, errs := try("status", "--join", invited, "--json")
	if err := json.Unmarshal([]byte(out), &told); code != 0 || err != nil {
		t.Fatalf("status: code %d, %v\n%s%s", code, err, out, errs)
	}
	if here, there := fmt.Sprint(names(seen.State.Members)), fmt.Sprint(names(told.Members)); here != there {
		t.Errorf("the dashboard shows %s, status %s", here, there)
	}
	if code, _, errs := try("control", "stop", "--join", where.Join()[0], "--operator-key", key); code != 0 {
		t.Fatal(errs)
	}
	for i, other := range others {
		if err := other.Wait(); err != nil {
			t.Errorf("peer %d: %v", i+1, err)
		}
		if name := lastLine(t, results[i].String()).Name; name != []string{"second", "third"}[i] {
			t.Errorf("the result of peer %d is that of %q", i+1, name)
		}
	}
	clitest.Eventually(t, "the end and its result", func() bool {
		seen = look(t, url)
		return seen.State.Over && seen.State.Final != nil
	})
	photograph(t, url, "over", 3)
	for _, m := range look(t, url).State.Members {
		if m.State != "over" {
			t.Errorf("after the end %s is %s", m.Name, m.State)
		}
	}
	if seen = look(t, url); len(names(seen.State.Members)) != 3 || len(seen.State.Matrix) == 0 {
		t.Errorf("after the end the dashboard shows %+v", seen)
	}
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("the one with the dashboard ends with code %d", cli.ExitCode(err))
	}
	done := lastLine(t, last.String())
	if done.Name != "first" {
		t.Errorf("its result is that of %q", done.Name)
	}
	if f := seen.State.Final; f == nil || f.String() != done.String() || !math.IsNaN(float64(f.ConsensusDistance)) {
		t.Errorf("it shows %+v, its result is %+v", f, done)
	}
}

func drain(says <-chan string) {
	for range says {
	}
}

// look asks a dashboard.
func look(t *testing.T, url string) (seen picture) {
	t.Helper()
	base, _, _ := strings.Cut(url, "?")
	answer, err := http.Get(base + "api/state")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// photograph takes pictures of the page, if they are wanted.
func photograph(t *testing.T, url, when string, peers int) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	b := newBrowser(t)
	b.screen(1440, 1000, 1, "light")
	b.must("Page.navigate", map[string]any{"url": url}, nil)
	b.until("all peers, and a curve", fmt.Sprintf(`document.querySelectorAll('#table tbody tr').length === %d && document.querySelector('#curve-accuracy .line').hasAttribute('d')`, peers))
	b.until("a bar at rest", `document.getElementById('filled').getAnimations().length === 0`)
	b.shoot(filepath.Join(*screenshots, "three-desktop-"+when+".png"))
	b.screen(390, 844, 2, "light")
	b.until("a phone's width", `document.documentElement.scrollWidth <= 390`)
	b.shoot(filepath.Join(*screenshots, "three-phone-"+when+".png"))
	for _, fault := range b.complaints() {
		t.Error(fault)
	}
}
