package fit

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// One that is given a token and data alone fits what the others do, also if it was started first;
// who gives other settings or other columns is not let in, and ends nobody.
func TestJoinTakesOver(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	outs := make(chan string, 2)
	join := func(to string) {
		code, out, stderr := program.Try("fit", "--json", "--listen", "127.0.0.1:0", "--run", "take", "--data", houses, "--join", to)
		if code != 0 {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		outs <- out
	}
	go join(address)
	args := []string{
		"fit", "--json", "--data", houses, "--target", "price>200", "--learner", "tree", "--split", "row:7/10", "--drop", "note,color",
		"--leaf-rows", "5", "--topology", "ring", "--listen", address, "--run", "take", "--stages", clitest.WriteFile(t, "stages.yaml", "- {kind: impute, by: median}\n- kind: codes\n"),
	}
	founder := clitest.Command(t, time.Minute, append(args, "--min-peers", "3")...)
	result, log := new(strings.Builder), new(clitest.Buffer)
	founder.Stdout, founder.Stderr = result, log
	if err := founder.Start(); err != nil {
		t.Fatal(err)
	}
	token := clitest.Token(t, log)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--data", houses, "--target", "price>300"}, "leave out --target to take over the others'"},
		{[]string{"--data", houses, "--topology", "tree"}, "leave out --topology to take over the others'"},
		{[]string{"--data", houses, "--topology", "star"}, "want exponential, ring"},
		{[]string{"--data", clitest.WriteFile(t, "x.csv", "size,price\n1,2\n")}, "give --data with the columns of the others'"},
	} {
		code, _, stderr := program.Try(append([]string{"fit", "--listen", "127.0.0.1:0", "--join", token}, c.args...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, %q", c.args, code, stderr)
		}
	}
	go join(token)
	if err := founder.Wait(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	hash := regexp.MustCompile(`"model_hash":"\w+"`)
	first := hash.FindString(result.String())
	for range cap(outs) {
		if out := <-outs; first == "" || hash.FindString(out) != first || !strings.Contains(out, `"learner":"tree","peers":3`) {
			t.Errorf("%s, not %s", out, first)
		}
	}
}

// What a member says of the number of peers is held against what may be given.
func TestMinPeersOfAnother(t *testing.T) {
	for _, n := range []int{0, -1, 1_000_000_000} {
		liar, o := pflag.NewFlagSet("fit", pflag.ContinueOnError), options{}
		o.register(liar)
		o.Run, o.Listen, o.MinPeersWait, o.MinPeers, o.Table.Target = "liar", []string{settings.Loopback}, time.Minute, n, "price"
		o.Doing, o.Topics = "fit", []string{topicRows, topicLearner}
		o.Share(liar)
		ctx, cancel := context.WithCancel(t.Context())
		addresses, gone := make(chan []string, 1), make(chan struct{})
		go func() {
			defer close(gone)
			join := o.Joiner(io.Discard)
			if _, leave, err := join(ctx, func(r watch.Report) { addresses <- r.Addresses }); err == nil {
				<-ctx.Done()
				leave()
			}
			close(addresses)
		}()
		code, _, stderr := program.Try("fit", "--data", houses, "--run", "liar", "--min-peers-wait", "1s", "--join", (<-addresses)[0])
		if code != cli.ExitUsage || !strings.Contains(stderr, fmt.Sprintf("--min-peers %d: want 1 to", n)) {
			t.Errorf("%d: exit code %d, %s", n, code, stderr)
		}
		cancel()
		<-gone
	}
}

// Who joins a fit that has a key is told so by the founder's line, and hears at once that the key
// is missing.
func TestJoinWithoutTheKey(t *testing.T) {
	t.Parallel()
	key := clitest.WriteFile(t, "run.key", strings.Repeat("ab", 32)+"\n")
	founder := clitest.Command(t, time.Minute, "fit", "--data", houses, "--target", "price", "--learner", "linear", "--listen", "127.0.0.1:0", "--min-peers", "2", "--run-key", key)
	log := new(clitest.Buffer)
	founder.Stderr = log
	if err := founder.Start(); err != nil {
		t.Fatal(err)
	}
	token := ""
	clitest.Eventually(t, "a token", func() bool {
		_, after, _ := strings.Cut(log.String(), "--join ")
		text, _, whole := strings.Cut(after, " --run-key FILE\n")
		token = text
		return whole
	})
	if code, _, stderr := program.Try("fit", "--data", houses, "--join", token); code != cli.ExitFailed || !strings.Contains(stderr, "give --run-key") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if code, _, stderr := program.Try("fit", "--data", houses, "--join", token, "--run-key", key); code != 0 {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if err := founder.Wait(); err != nil {
		t.Errorf("%v: %s", err, log.String())
	}
}
