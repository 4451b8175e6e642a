package main

import (
	"slices"
	"strings"
	"testing"
)

// TestChildEnvironment shows that children share the cores unless told
// otherwise, and take no settings from the environment.
func TestChildEnvironment(t *testing.T) {
	got := childEnvironment([]string{"HOME=/h", "GOSSIPNODE_PEERS=3"}, 4, 10)
	if want := []string{"HOME=/h", "GOMAXPROCS=2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := childEnvironment(nil, 4, 2); !slices.Equal(got, []string{"GOMAXPROCS=2"}) {
		t.Errorf("more peers than cores: %q", got)
	}
	given := []string{"GOMAXPROCS=7"}
	if got := childEnvironment(given, 4, 8); !slices.Equal(got, given) {
		t.Errorf("%q, want %q", got, given)
	}
}

// TestReportLine shows that a report comes through the pipe whole, and that what
// is none is passed on as text.
func TestReportLine(t *testing.T) {
	var out strings.Builder
	lineReporter(&out)(report{Kind: reportProgress, Status: &status{Step: 5, Loss: 0.5}})
	if e := reportEvent(2, out.String()); e.number != 2 || e.report == nil || e.report.Status.Step != 5 || e.report.Status.Loss != 0.5 {
		t.Errorf("%q became %+v", out.String(), e)
	}
	for _, text := range []string{"panic: oh", "{}", "3", ""} {
		if e := reportEvent(2, text); e.report != nil || e.line != text {
			t.Errorf("%q became %+v", text, e)
		}
	}
}

// TestLineWriter shows that lines come whole however they are written, and that
// endless ones are cut.
func TestLineWriter(t *testing.T) {
	var lines []string
	w := &lineWriter{take: func(line string) { lines = append(lines, line) }}
	for _, text := range []string{"one\ntw", "o\r\n\nthr", "ee", "\n", "four"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d, error %v", n, len(text), err)
		}
	}
	w.flush()
	if want := []string{"one", "two", "three", "four"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	lines = nil
	for range 3 {
		_, _ = w.Write([]byte(strings.Repeat("x", maxLine/2)))
	}
	_, _ = w.Write([]byte("\n"))
	if len(lines) != 1 || len(lines[0]) != maxLine {
		t.Errorf("%d lines", len(lines))
	}
}

func TestNextPorts(t *testing.T) {
	for _, c := range []struct {
		address string
		by      int
		want    string
	}{{"127.0.0.1:0", 3, "127.0.0.1:0"}, {"[::1]:4001", 3, "[::1]:4004"}, {":65532", 3, ":65535"}, {"", 3, ""}} {
		if got, err := nextPorts([]string{c.address}, c.by); err != nil || got[0] != c.want {
			t.Errorf("%q by %d: %q, error %v, want %q", c.address, c.by, got, err, c.want)
		}
	}
	for _, address := range []string{":65533", "host", "host:", "host:x", "/ip4/127.0.0.1/tcp/0", ":-1"} {
		if got, err := nextPorts([]string{address}, 3); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q: %q, error %v", address, got, err)
		}
	}
}
