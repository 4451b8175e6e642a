package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
)

// TestPrecedence shows that a flag hides the environment, that hides the file,
// and that the default.
func TestPrecedence(t *testing.T) {
	file := "batch: 10\nlr: 1e-3\ncodec: bf16\nmin-peers: 3\njoin: [a:1, b:2]\njson: true\n"
	environment := map[string]string{"GOSSIPNODE_BATCH": "20", "GOSSIPNODE_LR": "0.5", "GOSSIPNODE_LISTEN": "c:3,d:4"}
	s, err := parse(t, file, environment, "--batch", "30")
	if err != nil {
		t.Fatal(err)
	}
	if s.Batch != 30 || s.LR != 0.5 || s.Codec != "bf16" || s.MinPeers != 3 || !s.JSON || s.Model != "mlp" || s.CheckpointEvery != 30*time.Second {
		t.Errorf("batch %d, lr %v, codec %s, min-peers %d, json %v, model %s, a checkpoint every %s", s.Batch, s.LR, s.Codec, s.MinPeers, s.JSON, s.Model, s.CheckpointEvery)
	}
	if !slices.Equal(s.Join, []string{"a:1", "b:2"}) || !slices.Equal(s.Listen, []string{"c:3", "d:4"}) {
		t.Errorf("join %q, listen %q", s.Join, s.Listen)
	}
}

// TestStepsHideEpochs shows that of the two settings which exclude each other
// the one that comes first wins, and that two of one source are refused.
func TestStepsHideEpochs(t *testing.T) {
	s, err := parse(t, "epochs: 3\n", nil, "--steps", "7")
	if err != nil || s.Steps != 7 || s.Epochs != 0 {
		t.Errorf("--steps over the file's epochs: steps %d, epochs %v, error %v", s.Steps, s.Epochs, err)
	}
	s, err = parse(t, "steps: 7\n", map[string]string{"GOSSIPNODE_EPOCHS": "3"})
	if err != nil || s.Steps != 0 || s.Epochs != 3 {
		t.Errorf("GOSSIPNODE_EPOCHS over the file's steps: steps %d, epochs %v, error %v", s.Steps, s.Epochs, err)
	}
	s, err = parse(t, "steps: 7\nepochs: 3\n", nil)
	if err == nil {
		err = s.Validate(nil)
	}
	if err == nil || cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("both in the file: error %v", err)
	}
}

// TestBadConfig shows that every fault of a file is named with its line.
func TestBadConfig(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"model: mlp\nbacth: 5\n", `:2: unknown key "bacth": did you mean "batch"?`},
		{"min_peers: 5\n", `did you mean "min-peers"?`},
		{"peers: 5\n", `:1: unknown key "peers": it belongs to gossipnode local`},
		{"config: other\n", `unknown key "config"`},
		{"report: true\n", `unknown key "report"`},
		{"batch: 5\nbatch: 6\n", `key "batch" is there twice`},
		{"batch: [5, 6]\n", `key "batch" takes one value, not a list`},
		{"batch: five\n", `config.yaml:1: batch "five": want a whole number`},
		{"lr: 0\n", "config.yaml:1: lr 0: want a positive number"},
		{"batch: {a: 1}\n", `key "batch": want a plain value`},
		{"batch:\n", `key "batch": want a plain value`},
		{"- batch\n", "want a mapping"},
		{"batch: 5\n---\nbatch: 6\n", "want one YAML document"},
		{"batch: \"5\n", "config.yaml: yaml:"},
	} {
		_, err := parse(t, c.file, nil)
		if err == nil || cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want a usage error with %q", c.file, err, c.want)
		}
	}
	if _, err := parse(t, "", map[string]string{"GOSSIPNODE_BATCH": "five"}); err == nil || !strings.Contains(err.Error(), `variable GOSSIPNODE_BATCH "five": want a whole number`) {
		t.Errorf("a bad variable: error %v", err)
	}
}

// TestArguments shows that a child is started with exactly its parent's settings.
func TestArguments(t *testing.T) {
	given := []string{"--stages=2", "--steps=7", "--join=a:1", "--join=b,c:2", "--shard=dirichlet=0.1", "--json=true", "--lr=0.001", "--min-peers-wait=1m0s"}
	s, err := parse(t, "", nil, given...)
	if err != nil {
		t.Fatal(err)
	}
	args := s.Arguments()
	slices.Sort(args)
	slices.Sort(given)
	if !slices.Equal(args, given) {
		t.Errorf("arguments %q, want %q", args, given)
	}
}

// TestBadFile shows that values of a file which cannot be are laid to their lines.
func TestBadFile(t *testing.T) {
	for text, want := range map[string]string{
		"chekpoint: x\n":              `:1: unknown key "chekpoint": did you mean "checkpoint"?`,
		"checkpoint-evry: 1m\n":       `did you mean "checkpoint-every"?`,
		"checkpoint-every: often\n":   `:1: checkpoint-every "often": want a time`,
		"keep: 0\n":                   `:1: keep 0: want 1 to`,
		"keep: 5\n":                   `:1: keep needs --checkpoint`,
		"checkpoint-every: 5m\n":      `:1: checkpoint-every needs --checkpoint`,
		"final-wait: 5m\n":            `:1: final-wait needs --final merge`,
		"join: [127.0.0.1:0]\n":       `:1: join "127.0.0.1:0": want host:port`,
		"leave-within: 0s\n":          `:1: leave-within 0s: want a positive time`,
		"batch: 5\nstrategy: never\n": `:2: strategy "never": want`,
	} {
		code, out, logged := try("run", "--config", clitest.WriteFile(t, "node.yaml", text))
		if code != cli.ExitUsage || out != "" || !strings.Contains(logged, want) {
			t.Errorf("%q: exit code %d, standard output %q, no %q in\n%s", text, code, out, want, logged)
		}
	}
}

// TestATokenOfOneThatComesBack: a token that is good no more keeps out who has not been in the run.
func TestATokenOfOneThatComesBack(t *testing.T) {
	old := token.Of("digits", "12D3KooW", []string{"/ip4/192.0.2.7/tcp/4001"})
	old.Expires = 1
	s := Settings{Network: Network{Join: []string{old.String()}}}
	if err := s.redeem(cli.Origins{}); err == nil || cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("an old token: %v", err)
	}
	s.Checkpoint = t.TempDir()
	if err := s.redeem(cli.Origins{}); err == nil {
		t.Error("an empty folder is taken for a life before")
	}
	if err := os.WriteFile(filepath.Join(s.Checkpoint, "checkpoint-000001.safetensors"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.redeem(cli.Origins{}); err != nil || s.Run != "digits" || len(s.Join) != 1 {
		t.Errorf("one that comes back: %v; %+v", err, s.Network)
	}
}
