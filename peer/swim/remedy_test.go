package swim

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/loglimit"
)

// TestRemedies shows that memberlist's complaints come with what to do about them.
func TestRemedies(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	w := newLogWriter(zap.New(core), make(chan struct{}))
	for line, want := range map[string]string{
		"[WARN] memberlist: Refuting a suspect message (from: p)":      "overloaded",
		"[ERR] memberlist: Failed to send UDP ping: no address":        "Admission.Inquire",
		"[ERR] memberlist: Push/Pull with p failed: the stream ended":  "next member",
		"[ERR] memberlist: Received invalid msgType (99) from=1.2.3.4": "same release",
		"[DEBUG] memberlist: Initiating push/pull sync with: p":        "",
	} {
		if _, err := w.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		entry := logged.TakeAll()[0]
		if remedy, _ := entry.ContextMap()["remedy"].(string); !strings.Contains(remedy, want) || (want == "") != (remedy == "") {
			t.Errorf("%q: remedy %q", line, remedy)
		}
	}
}

// TestMemberlistsComplaintsOfOneKindAreLimited: their texts differ, and what they are about
// does not.
func TestMemberlistsComplaintsOfOneKindAreLimited(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	log, rest := loglimit.Limit(zap.New(core))
	w := newLogWriter(log, make(chan struct{}))
	const lines = 265 // after a freeze
	for i := range lines {
		fmt.Fprintf(w, "[WARN] memberlist: handler queue full, dropping message (%d) from=10.0.0.%d\n", i, i%256)
	}
	if n := logged.Len(); n == 0 || n > 10 {
		t.Errorf("%d lines of %d, want a few", n, lines)
	}
	written := logged.Len()
	rest()
	if told := logged.All()[logged.Len()-1].ContextMap()["left_out"]; told != uint64(lines-written) {
		t.Errorf("%v are said to be left out, want %d", told, lines-written)
	}
}
