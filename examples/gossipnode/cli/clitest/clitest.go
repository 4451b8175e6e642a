package clitest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Variable makes a test binary act as the program, for tests that need processes;
// children of such a process inherit it.
const Variable = "ACT_AS_GOSSIP_NODE"

// Program makes the root of the program under test.
type Program func(std cli.Streams) *cobra.Command

// Only is a program with these commands, each of which a function makes.
func Only(commands ...Program) Program {
	return func(std cli.Streams) *cobra.Command {
		root := &cobra.Command{Use: "gossipnode"}
		cli.Root(root)
		root.SetIn(std.In)
		root.SetOut(std.Out)
		root.SetErr(std.Err)
		for _, command := range commands {
			root.AddCommand(command(std))
		}
		return root
	}
}

// Waiting is how many tests with t.Parallel run at the same time, unless -parallel says otherwise: mostly they wait
// for processes, sockets and timeouts. Tests that measure do not call it, and so run alone.
const Waiting = "6"

// Main is TestMain: it acts as the program if Variable is set, and otherwise makes sure that tests leave no goroutine
// behind.
func (p Program) Main(m *testing.M) {
	// Workers of a fuzz test inherit the variable too, and are tests.
	if os.Getenv(Variable) != "" && !slices.Contains(os.Args, "-test.fuzzworker") {
		std := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
		os.Exit(cli.Execute(p(std), os.Args[1:]))
	}
	// All processes that tests start inherit the variable.
	if err := errors.Join(os.Setenv(Variable, "1"), flag.Set("test.parallel", Waiting)); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// Try executes a command line in this process.
func (p Program) Try(args ...string) (code int, out, err string) {
	var stdout bytes.Buffer
	var stderr Buffer
	code = cli.Execute(p(cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}), args)
	return code, stdout.String(), stderr.String()
}

// Buffer is a buffer to which several goroutines may write, as they do to standard error.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // not embedded, since its ReadFrom would not lock
}

// Write implements io.Writer.
func (b *Buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

// String is the text written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Reset drops the text written so far.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// Command prepares the program as a process. It ends with the test, and after bound at the latest.
func Command(t *testing.T, bound time.Duration, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), Variable+"=1")
	return cmd
}

// ChildrenOf finds the child processes of a process. It needs /proc. What has ended, and what has not started another program, is
// none: before its first child, Go's os package makes one that ends at once, to see what the kernel can do.
func ChildrenOf(t *testing.T, parent int) []int {
	t.Helper()
	var children []int
	started := func(id int) string {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(id) + "/cmdline")
		return string(line)
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// The name may contain any character, and ends with the last parenthesis; the state and the parent follow.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if line := started(id); fields[1] == strconv.Itoa(parent) && line != "" && line != started(parent) {
			children = append(children, id)
		}
	}
	return children
}

// Running tells whether a process has not ended. It needs /proc.
func Running(id int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	return err == nil && !bytes.Contains(text, []byte(") Z ")) // a zombie has ended
}

// CheckGone tests that the processes end.
func CheckGone(t *testing.T, children []int) {
	t.Helper()
	Eventually(t, "the children end", func() bool {
		for _, id := range children {
			if Running(id) {
				return false
			}
		}
		return true
	})
}

// Eventually waits until a condition holds. Its bound is for machines with two busy processors, and only a failing
// test waits for so long. Checks cost time, so they become less frequent.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const bound = 2 * time.Minute
	for began := time.Now(); !holds(); {
		waited := time.Since(began)
		if waited > bound {
			t.Fatalf("%s: not within %s", what, bound)
		}
		time.Sleep(min(max(waited/20, 10*time.Millisecond), 100*time.Millisecond))
	}
}

// Token waits until a command logs the token with which others join.
func Token(t *testing.T, log *Buffer) (token string) {
	t.Helper()
	Eventually(t, "a token", func() (whole bool) {
		_, after, _ := strings.Cut(log.String(), "--join ")
		token, _, whole = strings.Cut(after, "\n")
		return whole
	})
	return strings.TrimSpace(token)
}

// ScanLines collects lines as they arrive, in the background.
func ScanLines(t *testing.T, from io.Reader) <-chan string {
	t.Helper()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// WriteFile writes a file in a folder of the test.
func WriteFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
