//go:build unix

package bridge

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// values is the size of the trainers' model.
const values = 100

const patience = time.Minute

// client is a trainer.
type client struct {
	t       *testing.T
	to      io.WriteCloser
	answers *bufio.Scanner
	cmd     *exec.Cmd // of its bridge; nil if it has attached
}

// memory is a file of values, each of which is 1.
func memory(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if _, err := file.Write([]byte(strings.Repeat("\x00\x00\x80\x3f", values))); err != nil {
		t.Fatal(err)
	}
	return file
}

// spawn starts a bridge with inherited descriptors, as a trainer does.
func spawn(t *testing.T, file *os.File, args ...string) *client {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(pair[0])
	syscall.CloseOnExec(pair[1])
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close() // FileConn has one of its own
	conn, err := net.FileConn(ours)
	if err != nil {
		t.Fatal(err)
	}
	cmd := clitest.Command(t, patience, append([]string{"bridge", "--control-fd", "3", "--memory-fd", "4"}, args...)...)
	cmd.ExtraFiles = []*os.File{theirs, file}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewScanner(conn), cmd}
}

// answer is what tests look at.
type answer struct {
	OK         bool     `json:"ok"`
	Addresses  []string `json:"addresses"`
	Steps      int      `json:"steps"`
	FlockSteps int      `json:"flock_steps"`
	Members    int      `json:"members"`
	Error      struct{ Code, Detail string }
}

func (d *client) say(format string, args ...any) (a answer) {
	d.t.Helper()
	if _, err := fmt.Fprintf(d.to, format+"\n", args...); err != nil {
		d.t.Fatal(err)
	}
	return d.hear()
}

func (d *client) hear() (a answer) {
	d.t.Helper()
	if !d.answers.Scan() {
		d.t.Fatalf("no answer: %v", d.answers.Err())
	}
	if err := json.Unmarshal(d.answers.Bytes(), &a); err != nil {
		d.t.Fatalf("%q: %v", d.answers.Text(), err)
	}
	return a
}

// hello is the line with a layout of all values, and more fields.
func hello(more string) string {
	return fmt.Sprintf(`{"op":"hello","v":1,"listen":["127.0.0.1:0"],"layout":[{"name":"w","shape":[%d]}]%s}`, values, more)
}

// exits waits for the bridge's end.
func (d *client) exits(code int) {
	d.t.Helper()
	_ = d.cmd.Wait()
	if got := d.cmd.ProcessState.ExitCode(); got != code {
		d.t.Errorf("exit code %d, want %d", got, code)
	}
}

// TestTwoTrainersMeet: each spawns a bridge; settings of hello and of the command line are heeded.
func TestTwoTrainersMeet(t *testing.T) {
	t.Parallel()
	first := spawn(t, memory(t), "--codec", "bf16")
	if a := first.say("%s", hello(`,"settings":{"steps":500,"codec":"no codec: the command line's comes first","every":"2"}`)); !a.OK || len(a.Addresses) == 0 {
		t.Fatalf("%+v", a)
	} else {
		second := spawn(t, memory(t))
		if b := second.say("%s", hello(fmt.Sprintf(`,"join":[%q]`, a.Addresses[0]))); !b.OK {
			t.Fatalf("%+v", b)
		}
		clitest.Eventually(t, "the two to meet", func() bool {
			return first.say(`{"op":"commit","steps":1}`).Members == 2 && second.say(`{"op":"commit","steps":1}`).Members == 2
		})
		if a := second.say(`{"op":"leave"}`); !a.OK {
			t.Errorf("%+v", a)
		}
		second.exits(cli.ExitDone)
	}
	first.to.Close() // without a word
	first.exits(cli.ExitFailed)
}

// TestSettingsAreChecked: what a hello asks for is refused by name, and another hello may follow.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	d := spawn(t, memory(t))
	for more, want := range map[string]string{
		`,"settings":{"codecs":"raw"}`:             `did you mean "codec"`,
		`,"settings":{"codec":"rough"}`:            `"rough"`,
		`,"settings":{"codec":["raw","bf16"]}`:     "one value",
		`,"settings":{"steps":{}}`:                 "want a string",
		`,"settings":{"steps":-1}`:                 "steps",
		`,"settings":{"join":[1]}`:                 "list of strings",
		`,"settings":{"config":"/etc/passwd"}`:     "no such setting",
		`,"settings":{"control-fd":5}`:             "no such setting",
		`,"settings":{"run-key":"/nowhere"}`:       "/nowhere",
		`,"settings":{"metrics":"nowhere"}`:        "host:port",
		`,"join":["not an address"]`:               "not an address",
		`,"settings":{"final-wait":"-3s"}`:         "final-wait",
		`,"run":"` + strings.Repeat("x", 99) + `"`: "99 bytes",
	} {
		if a := d.say("%s", hello(more)); a.OK || a.Error.Code != "settings" || !strings.Contains(a.Error.Detail, want) {
			t.Errorf("%s: %+v, want %q", more, a, want)
		}
	}
	if a := d.say("%s", hello("")); !a.OK {
		t.Errorf("%+v", a)
	}
	d.say(`{"op":"leave"}`)
	d.exits(cli.ExitDone)
}

// TestStandardInput is a way without descriptors, with the memory as a file; a signal ends it in
// good order.
func TestStandardInput(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"leave", "the end of the input", "a signal"} {
		t.Run(end, func(t *testing.T) {
			file := memory(t)
			cmd := clitest.Command(t, patience, "bridge")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			d := &client{t, in, bufio.NewScanner(out), cmd}
			if a := d.say("%s", hello(fmt.Sprintf(`,"memory":%q`, file.Name()))); !a.OK {
				t.Fatalf("%+v", a)
			}
			if a := d.say(`{"op":"commit","steps":3}`); a.Steps != 3 {
				t.Errorf("%+v", a)
			}
			switch end {
			case "leave":
				d.say(`{"op":"leave"}`)
				d.exits(cli.ExitDone)
			case "a signal":
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				d.exits(cli.ExitFailed)
			default:
				in.Close()
				d.exits(cli.ExitFailed)
			}
		})
	}
}

// attach connects to a socket, and sends a line with the memory's descriptor.
func attach(t *testing.T, path string, file *os.File, line string) *client {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, _, err := conn.WriteMsgUnix([]byte(line+"\n"), syscall.UnixRights(int(file.Fd())), nil); err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err) // one that is busy may have said so, and gone
	}
	return &client{t: t, to: conn, answers: bufio.NewScanner(conn)}
}

// socketPath is a short one: that of a socket has at most some hundred bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bridge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// listening is a bridge that waits for trainers.
func listening(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := clitest.Command(t, patience, "bridge", "--socket", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "the socket", func() bool {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return cmd
}

// TestSocket: one trainer after another, each with a memory of its own; a second at once is sent
// away; one that dies leaves room for the next, and one that connects and says nothing takes none.
func TestSocket(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close() // and the socket's file stays
	cmd := listening(t, path)
	silent, err := net.Dial("unix", path) // keeps nobody out
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var last *client
	for range 3 {
		clitest.Eventually(t, "a place", func() bool {
			last = attach(t, path, memory(t), hello(""))
			return last.hear().OK
		})
		second := attach(t, path, memory(t), hello(""))
		if a := second.hear(); a.Error.Code != "busy" {
			t.Errorf("a second at once: %+v", a)
		}
		if a := last.say(`{"op":"commit","steps":2}`); a.Steps != 2 {
			t.Errorf("%+v", a)
		}
		last.to.Close()
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if code, _, said := program.Try("bridge", "--socket", path); code == cli.ExitDone || !strings.Contains(said, "another process listens") {
		t.Errorf("a second bridge: exit code %d, %s", code, said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the bridge's end: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket's file is left behind")
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	plain := clitest.WriteFile(t, "plain", "text")
	for _, c := range []struct {
		line, want string
	}{
		{"bridge --memory-fd 4", "needs --control-fd"},
		{"bridge --socket x --control-fd 3", "two ways"},
		{"bridge --control-fd 999", "no socket"},
		{"bridge --socket " + plain, "no socket"},
		{"bridge --model mlp", "--model"},
	} {
		if code, _, said := program.Try(strings.Fields(c.line)...); code == cli.ExitDone || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, want %q:\n%s", c.line, code, c.want, said)
		}
	}
}
