package swim

import (
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestRemedies shows that memberlist's complaints come with what to do about them.
func TestRemedies(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	w := newLogWriter(zap.New(core), make(chan struct{}))
	for line, want := range map[string]string{
		"[WARN] memberlist: Refuting a suspect message (from: p)":      "overloaded",
		"[ERR] memberlist: Failed to send UDP ping: no address":        "doctor",
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
