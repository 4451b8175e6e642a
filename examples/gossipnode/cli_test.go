package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestWrongUse shows that what is wrong with a command line is said, with what
// to do about it, with exit code 2 and nothing on standard output.
func TestWrongUse(t *testing.T) {
	small := clitest.Pictures(t, 40, 20)
	for _, c := range []struct{ line, want string }{
		{"bogus", `unknown command "bogus": want one of`},
		{"lokal", "did you mean local?"},
		{"run --bogus", "unknown flag: --bogus"},
		{"run --stages 65", "--stages \"65\": want 1 to 64 stages, or a file"},
		{"run --stages 0", "--stages \"0\": want 1 to 64 stages, or a file"},
		{"run --activations int8", "--activations is for --stages K"},
		{"run --stages 2 --activations lattice4+1", "want raw, bf16, fp16 or int8"},
		{"run --stages 2 --strategy ps-bsp", "leave out --strategy ps-bsp: a peer has one stage of the model"},
		{"run --stages 2 --until accuracy=0.9", "leave out --until"},
		{"run word", `run takes flags only, not "word"`},
		{"run --steps many", `--steps "many": want a whole number that is not negative`},
		{"run --steps -5", `--steps "-5": want a whole number that is not negative`},
		{"run --steps 99999999999999999999", "too large a number"},
		{"local --peers abc", `--peers "abc": want a whole number`},
		{"run --min-peers-wait 5", `--min-peers-wait "5": want a time`},
		{"run --peers 4", "unknown flag: --peers: it belongs to gossipnode compare, "},
		{"run --bacth 4", `did you mean "--batch"?`},
		{"help frob", `unknown command "frob": want one of`},
		{"help run frob", `not "frob"`},
		{"run --metrics foo", `--metrics "foo": want host:port`},
		{"run --join /ip4/1.2.3.4", `--join "/ip4/1.2.3.4": want host:port`},
		{"run --join /ip4/127.0.0.1/tcp/9/p2p/xyz", "/tcp/4001/p2p/12D3KooW"},
		{"run --listen /ip4/127.0.0.1", "or a multiaddr, as in /ip4/0.0.0.0/tcp/4001"},
		{"run --dataset bogus", `--dataset "bogus": want glyphs, mnist, fashion-mnist, cifar10, cifar100, images`},
		{"run --model bogus", `--model "bogus": want mlp, softmax, cnn, mobilenet-small, resnet-small, resnet20,`},
		{"run --codec bogus", `--codec "bogus": want raw, bf16, fp16, int8, `},
		{"run --strategy bogus", `--strategy "bogus": want adpsgd, dpsgd, allreduce`},
		{"run --optimizer bogus", `--optimizer "bogus": want sgd, momentum, adamw, lion or muon`},
		{"run --schedule bogus", `--schedule "bogus": want cosine, constant or step`},
		{"run --log-level bogus", `--log-level "bogus": want debug, info, warn or error`},
		{"run --dataset mnist", "--dataset mnist needs --data"},
		{"run --steps 5 --epochs 1", "--steps and --epochs both"},
		{"run --steps 0", "--steps 0: want a positive number"},
		{"run --epochs -1", "--epochs -1: want a positive number"},
		{"run --epochs NaN", "--epochs NaN: want a positive number"},
		{"run --lr 0", "--lr 0: want a positive number"},
		{"run --beta2 0.95", "--beta2 is for adamw, lion and muon, not for momentum"},
		{"run --optimizer adamw --beta2 1 --clip -1 --weight-decay NaN --lr-floor 2", "--beta2 1: want 0 to below 1"},
		{"run --warmup 2", "--warmup 2: want a share"},
		{"run --batch 0", "--batch 0: want at least 1"},
		{"run --epochs 1e300", "--epochs 1e+300: want a positive number, up to 1000000000"},
		{"run --step-time 20s", "--step-time 20s: want 0 to 10s"},
		{"run --dataset mnist --data " + small + " --batch 41", "use a smaller batch"},
		{"run --dataset mnist --data " + small + " --part 0/41", "leave some empty"},
		{"run --part 4/4", `--part "4/4": want I/N`},
		{"run --part -1/4", `--part "-1/4": want I/N`},
		{"run --part 1", `--part "1": want I/N`},
		{"run --shard bogus", `--shard "bogus": want iid`},
		{"run --shard dirichlet=0 --part 0/4", `--shard "dirichlet=0": want iid`},
		{"run --shard dirichlet=0.1", "say with --part I/N"},
		{"run --every 0", `--every "0": want auto`},
		{"run --every often", `--every "often": want auto`},
		{"run --run= ", "--run has 0 bytes"},
		{"run --min-peers 0", "--min-peers 0: want 1"},
		{"run --join nowhere", `--join "nowhere": want host:port`},
		{"run --listen nowhere", `--listen "nowhere": want host:port`},
		{"run --config nowhere.yaml", "nowhere.yaml: no such file"},
		{"run --record /nowhere/run.jsonl", "--record no file can be made in /nowhere (no such file or directory): make that folder"},
		{"fit --data x.csv --target y --out /nowhere/x.model", "--out no file can be made in /nowhere"},
		{"fit --data x.csv --target y --out " + small, "is a folder: give a file"},
		{"compare --plot /nowhere/race.png", "--plot no file can be made in /nowhere"},
		{"local --hold", "--hold is for run: give --holders"},
		{"local --holders 1 --strategy alone", "--holders 1: with --strategy alone nobody takes"},
		{"run --hold --dashboard :8080", "--dashboard a member that holds data and does not train has none"},
		{"local --peers 0", "--peers 0: want 1 to 1000"},
		{"simulate --part 0/2", "belongs to gossipnode"},
		{"simulate --listen 127.0.0.1:0", "belongs to gossipnode"},
		{"local --part 0/4", "--part is for run"},
		{"local --strategy ps-bsp --server 12D3KooWx", "local gives each peer a new identity"},
		{"run --operator me", `--operator "me": want a peer id, as keygen prints it`},
		{"local --key node.key", "--key is for run"},
		{"local --metrics 127.0.0.1:65534", `--metrics "127.0.0.1:65534": want a port from 0 to 65535, for the last peer too`},
		{"local --listen 127.0.0.1:65534", `--listen "127.0.0.1:65534": want a port`},
		{"run --join /ip4/127.0.0.1/tcp/0", `--join "/ip4/127.0.0.1/tcp/0": want host:port`},
		{"run --gossip-key nowhere", "make the file with openssl"},
		{"keygen", "keygen needs --out"},
		{"topology --peers 1", "--peers 1: want 2 to 1000"},
		{"topology --peers 1001", "--peers 1001: want 2 to 1000"},
		{"topology --active 1.5", "--active 1.5: want a share between 0 and 1"},
		{"topology --active 0", "--active 0: want a share between 0 and 1"},
		{"topology --active NaN", "--active NaN: want a share between 0 and 1"},
		{"topology --peers 10 --active 0.2", "--active 0.2: with fewer than a third active, passive peers become active: want at least 0.40"},
		{"topology --peers 4 --active 0.99", "leaves one class empty: want 2 to 3"},
		{"topology ring", "topology takes flags only"},
	} {
		t.Run(c.line, func(t *testing.T) {
			code, out, err := try(strings.Fields(c.line)...)
			if code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) || !strings.Contains(err, "--help") {
				t.Errorf("exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", code, out, err, cli.ExitUsage, c.want)
			}
		})
	}
}

// TestFaults shows that what is wrong with what the flags name is said too, with an exit
// code of its own, and that no checkpoint folder is left behind.
func TestFaults(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	truncated, other := clitest.Pictures(t, 100, 20), clitest.Pictures(t, 100, 20)
	images := filepath.Join(truncated, "train-images-idx3-ubyte.gz")
	if err := os.Truncate(images, 500); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "train-labels-idx1-ubyte.gz"), []byte("not IDX at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, identity := clitest.WriteFile(t, "text", "no key, no model"), filepath.Join("..", "..", "testdata", "releases", "2026-11-25", "node.key")
	for _, c := range []struct{ line, want string }{
		{"--dataset mnist --data " + missing, "not found"},
		{"--dataset mnist --data " + text, "is a file: give the folder"},
		{"--dataset mnist --data " + truncated, "truncated"},
		{"--dataset mnist --data " + other, "not the IDX file"},
		{"--key " + missing, "gossipnode keygen --out " + missing},
		{"--key " + text, `no PEM block "PRIVATE KEY"`},
		{"--key " + filepath.Dir(text), "is a directory"},
		{"--dataset mnist --data " + clitest.Pictures(t, 100, 20) + " --init " + text, "reading initial values"},
		{"--dataset mnist --data " + clitest.Pictures(t, 100, 20) + " --metrics 192.0.2.1:9", "give another address with --metrics"},
		{"--listen 192.0.2.1:4001", "listen on an address of this machine"},
		{"--run-key " + missing, missing},
		{"--join 127.0.0.1:1 --run-key " + identity, "it is a private key"},
		{"--allow " + missing, "make the file, with the id of a peer in each line"},
		{"--join 127.0.0.1:1 --allow " + text, `"no key, no model" is not the id of a peer`},
		{"--join 127.0.0.1:1 --key " + missing, "gossipnode keygen --out " + missing},
		{"--join 127.0.0.1:1 --allow " + missing, missing},
		{"--checkpoint " + filepath.Join(text, "below"), "checkpoint folder"},
	} {
		t.Run(c.line, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "checkpoint")
			args := append([]string{"run"}, strings.Fields(c.line)...)
			if !strings.Contains(c.line, "metrics") && !strings.Contains(c.line, "listen") && !strings.Contains(c.line, "allow") && !strings.Contains(c.line, "checkpoint") {
				args = append(args, "--checkpoint", folder)
			}
			code, out, err := try(args...)
			if code != cli.ExitConfig || out != "" || !strings.Contains(err, c.want) {
				t.Errorf("exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", code, out, err, cli.ExitConfig, c.want)
			}
			if _, err := os.Stat(folder); err == nil {
				t.Error("the checkpoint folder has been made although there is nothing to train")
			}
		})
	}
}

// TestFaultsOfOtherCommands have the same exit code.
func TestFaultsOfOtherCommands(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for command, flags := range map[string][]string{"status": {"--key", "--run-key"}, "invite": {"--key", "--run-key"}, "control": {"--operator-key"}} {
		for _, flag := range flags {
			args := []string{command, "--join", "127.0.0.1:1", flag, missing}
			if command == "control" {
				args = append(args, "pause")
			}
			if code, out, err := try(args...); code != cli.ExitConfig || out != "" || !strings.Contains(err, missing) {
				t.Errorf("%s %s: exit code %d, standard error:\n%s", command, flag, code, err)
			}
		}
	}
}

// TestFaultsThatPass are failures, after which a supervisor is to start again: what another
// process has may be free by then.
func TestFaultsThatPass(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	folder := checkpoint.Folder{Dir: filepath.Join(t.TempDir(), "checkpoint")}
	lock, err := folder.Make(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for line, want := range map[string]string{
		"--listen " + taken.Addr().String():  "address already in use",
		"--metrics " + taken.Addr().String(): "address already in use",
		"--checkpoint " + folder.Dir:         "is in use by another process",
	} {
		args := append([]string{"run", "--steps", "1"}, strings.Fields(line)...)
		if code, out, err := try(args...); code != cli.ExitFailed || out != "" || !strings.Contains(err, want) {
			t.Errorf("%s: exit code %d, standard error:\n%s", line, code, err)
		}
	}
}

// TestCheckpointFile shows that a file in place of the checkpoint's folder is
// named before anything begins, with what to do.
func TestCheckpointFile(t *testing.T) {
	file := clitest.WriteFile(t, "model.safetensors", "")
	for _, command := range []string{"run", "local"} {
		if code, out, err := try(command, "--checkpoint", file); code != cli.ExitConfig || out != "" || !strings.Contains(err, "--checkpoint "+file+" is a file: give a folder") {
			t.Errorf("%s: exit code %d, standard error:\n%s", command, code, err)
		}
	}
}

// TestHelpIsShort shows that --help has the common flags only, by topic, that of run and
// local fits a screen, and that --help-all has all of them and more about the command.
func TestHelpIsShort(t *testing.T) {
	for command, details := range map[string]string{"run": "SIGINT or SIGTERM", "local": "Ctrl-C asks all", "simulate": "", "compare": ""} {
		_, some, _ := try(command, "--help")
		code, all, _ := try(command, "--help-all")
		if n := strings.Count(some, "\n  -"); n < 10 || n > 23 || !strings.Contains(some, "\nTraining:\n") || !strings.Contains(some, "with --help-all") {
			t.Errorf("%s --help has %d flags:\n%s", command, n, some)
		}
		if words := strings.Join(strings.Fields(some), " "); !strings.Contains(words, " "+cli.List(nets.Names())+" ") || strings.Contains(words, "...") {
			t.Errorf("%s --help cuts a list:\n%s", command, some)
		}
		if n := strings.Count(all, "\n      --"); code != cli.ExitDone || n < 40 || !strings.Contains(all, "\n      --budget ") || strings.Contains(all, "with --help-all") {
			t.Errorf("%s --help-all has %d flags, exit code %d", command, n, code)
		}
		if details == "" {
			continue
		}
		if lines := strings.Count(some, "\n"); lines > 42 || strings.Contains(some, details) || !strings.Contains(all, details) {
			t.Errorf("%s --help has %d lines, want at most 42, and %q with --help-all only", command, lines, details)
		}
		for line := range strings.Lines(some) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s --help has %d columns, want at most 80: %s", command, n, line)
			}
		}
	}
}

// TestHelp shows that every command has help with an example.
func TestHelp(t *testing.T) {
	for _, command := range []string{"", "run", "local", "keygen", "control"} {
		code, out, err := try(append(strings.Fields(command), "--help")...)
		if code != cli.ExitDone || err != "" || !strings.Contains(out, "Examples:\n  gossipnode "+command) {
			t.Errorf("%q --help: exit code %d, standard error %q, standard output:\n%s", command, code, err, out)
		}
	}
}

// TestFaultNamesSource shows that a value which cannot be is laid to where it
// comes from.
func TestFaultNamesSource(t *testing.T) {
	t.Setenv("GOSSIPNODE_CODEC", "bogus")
	code, _, text := try("run", "--every", "0", "--config", clitest.WriteFile(t, "config.yaml", "seed: 1\nbatch: -3\n"))
	for _, want := range []string{"config.yaml:2: batch -3: want", `environment variable GOSSIPNODE_CODEC "bogus": want`, `--every "0": want`} {
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, text)
		}
	}
}

// TestHelpAllIsThere shows that each command whose --help speaks of --help-all takes it, and that a command without
// it shows all its flags: status, invite and topology hid --run-key, and refused --help-all.
func TestHelpAllIsThere(t *testing.T) {
	_, commands, _ := try("--help")
	_, commands, _ = strings.Cut(commands, "\nCommands:\n")
	commands, _, _ = strings.Cut(commands, "\n\n")
	seen := 0
	for line := range strings.Lines(commands) {
		command := strings.Fields(line)[0]
		if command == "help" {
			continue
		}
		seen++
		_, some, _ := try(command, "--help")
		code, all, _ := try(command, "--help-all")
		if said := strings.Contains(some, "with --help-all"); said != (code == cli.ExitDone) {
			t.Errorf("%s --help speaks of --help-all: %v, which ends with exit code %d", command, said, code)
		}
		if slices.Contains([]string{"status", "invite", "topology"}, command) && !strings.Contains(some+all, "--run-key string") {
			t.Errorf("no help of %s has --run-key", command)
		}
	}
	if seen < 20 {
		t.Errorf("%d commands seen, want all", seen)
	}
}
