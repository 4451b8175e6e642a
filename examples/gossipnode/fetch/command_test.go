package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// fetchWith executes "data" with sets of a test's own.
func fetchWith(sets []publicSet, args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := newCommand(cli.Streams{Out: &stdout, Err: &stderr}, sets)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

// TestFetchCommand shows what the command prints.
func TestFetchCommand(t *testing.T) {
	data := content(1, 1000)
	set := publicSet{name: "test", bases: []string{"https://nowhere.invalid/"}, files: []publicFile{publicFileOf("one", data)}}
	dir, base := t.TempDir(), mirrorOf(t, serve(data))
	out, said, err := fetchWith([]publicSet{set}, "fetch", "test", "--data", dir, "--from", base, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var result fetchResult
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := publicFile{Name: "one", Bytes: 1000, SHA256: set.files[0].SHA256}
	if result.Dataset != "test" || result.Data != dir || result.Received != 1000 || len(result.Files) != 1 || result.Files[0] != want {
		t.Errorf("%+v", result)
	}
	if !strings.Contains(said, "one: 100 % of 1 kB") {
		t.Errorf("progress:\n%s", said)
	}
	out, _, err = fetchWith([]publicSet{set}, "fetch", "test", "--data", dir, "--from", strings.TrimSuffix(base, "/"))
	if err != nil || !strings.Contains(out, "verified: 1 file, 0 B fetched") || !strings.Contains(out, "--dataset test --data "+dir) {
		t.Errorf("the second time: %v\n%s", err, out)
	}
}

// TestDefaultFolder shows where files go if nobody says.
func TestDefaultFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	data := content(1, 10)
	set := publicSet{name: "test", bases: []string{mirrorOf(t, serve(data))}, files: []publicFile{publicFileOf("one", data)}}
	if _, _, err := fetchWith([]publicSet{set}, "fetch", "test"); err != nil {
		t.Fatal(err)
	}
	mustHold(t, filepath.Join("data", "test", "one"), data)
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"data fetsh", `unknown command "fetsh"`},
		{"data fetch", "the name of one data set: mnist, fashion-mnist, cifar10 or cifar100"},
		{"data fetch mnist cifar10", "the name of one data set"},
		{"data fetch imagenet", `no data set "imagenet" to fetch: want mnist, fashion-mnist, cifar10 or cifar100`},
		{"data fetch mnist --from nowhere", `--from "nowhere": want the URL of a folder`},
		{"data fetch mnist --from ftp://a.example/", "want the URL of a folder"},
		{"data fetch mnist --frm x", `did you mean "--from"?`},
	} {
		if code, out, err := program.Try(strings.Fields(c.line)...); code != cli.ExitUsage || out != "" || !strings.Contains(err, c.want) || !strings.Contains(err, "--help") {
			t.Errorf("%s: exit code %d, standard output %q, standard error:\n%s\nwant code %d and %q", c.line, code, out, err, cli.ExitUsage, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for line, want := range map[string]string{
		"data": "Examples:\n  gossipnode data fetch", "data --help": "Examples:\n  gossipnode data fetch", "data fetch --help": "--data DIR",
		"help data fetch": "Examples:\n  gossipnode data fetch",
	} {
		if code, out, err := program.Try(strings.Fields(line)...); code != cli.ExitDone || err != "" || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, standard error %q, standard output:\n%s", line, code, err, out)
		}
	}
}

// TestPublicSets shows that what is pinned can be what was meant: each file once,
// with a sum that could be one, over HTTPS.
func TestPublicSets(t *testing.T) {
	sums := make(map[string]bool)
	for _, set := range publicSets() {
		for _, base := range set.bases {
			if !strings.HasPrefix(base, "https://") || !strings.HasSuffix(base, "/") {
				t.Errorf("%s: %s", set.name, base)
			}
		}
		for _, file := range append(set.files, set.members...) {
			if len(file.SHA256) != 64 || strings.Trim(file.SHA256, "0123456789abcdef") != "" || sums[file.SHA256] || file.Bytes < 1000 {
				t.Errorf("%s: %+v", set.name, file)
			}
			sums[file.SHA256] = true
		}
	}
}

// TestCommandFails shows that a failed download ends with exit code 1.
func TestCommandFails(t *testing.T) {
	base := mirrorOf(t, serve([]byte("<html>not it</html>")))
	code, out, err := program.Try("data", "fetch", "mnist", "--data", t.TempDir(), "--from", base)
	if code != cli.ExitFailed || out != "" || !strings.Contains(err, "it has 19 bytes, the original 9912422") {
		t.Errorf("exit code %d, standard output %q, standard error:\n%s", code, out, err)
	}
	if _, err := os.Stat("data"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder nobody asked for: %v", err)
	}
}
