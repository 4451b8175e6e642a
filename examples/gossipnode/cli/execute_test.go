package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

type ownCode struct{ error }

func (ownCode) ExitWith() int { return 7 }

// TestExecute shows what a command ends with, and what is said about it.
func TestExecute(t *testing.T) {
	failure := errors.New("it rains")
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{nil, ExitDone, ""},
		{failure, ExitFailed, "node: it rains\n"},
		{fmt.Errorf("asking: %w", Usage(failure)), ExitUsage, "node: asking: it rains\nSee node work --help.\n"},
		{fmt.Errorf("peer 3: %w", ownCode{failure}), 7, "node: peer 3: it rains\n"},
		{Reported{failure}, ExitFailed, ""},
		{fmt.Errorf("reading: %w", context.Canceled), ExitFailed, "node: interrupted\n"},
		{Reported{ownCode{failure}}, 7, ""},
		{fmt.Errorf("the other process: %w", &exec.ExitError{}), ExitFailed, "node: the other process: "},
	} {
		var said bytes.Buffer
		root := &cobra.Command{Use: "node"}
		Root(root)
		root.SetErr(&said)
		root.AddCommand(&cobra.Command{Use: "work", RunE: func(*cobra.Command, []string) error { return c.err }})
		if code := Execute(root, []string{"work"}); code != c.code || !strings.HasPrefix(said.String(), c.says) || c.says == "" && said.Len() > 0 {
			t.Errorf("%v: exit code %d, said %q, want %d and %q", c.err, code, &said, c.code, c.says)
		}
	}
}
