package p2pnet

import (
	"log/slog"
	"testing"

	"github.com/libp2p/go-libp2p/gologshim"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestBridgeLogs shows that what libp2p's parts log goes to zap, at levels of ours and
// with a remedy, and to nobody once released.
func TestBridgeLogs(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	release := BridgeLogs(zap.New(core))
	part := gologshim.Logger("swarm-of-the-test")
	part.Error("cannot dial", "peer", "p", "attempts", 3)
	part.With("a", 1).WithGroup("g").Warn("slow", "b", 2)
	part.Info("listening")
	part.Debug("chatter")
	release()
	part.Error("after the end")
	entries := logged.All()
	if len(entries) != 3 {
		t.Fatalf("logged are %+v", entries)
	}
	for i, want := range []zapcore.Level{zapcore.WarnLevel, zapcore.InfoLevel, zapcore.DebugLevel} {
		if entries[i].Level != want || entries[i].LoggerName != "libp2p" {
			t.Errorf("%q is logged at %s by %q", entries[i].Message, entries[i].Level, entries[i].LoggerName)
		}
	}
	first, second := entries[0].ContextMap(), entries[1].ContextMap()
	if first["peer"] != "p" || first["attempts"] != "3" || first["logger"] != "swarm-of-the-test" || first["remedy"] == nil {
		t.Errorf("an error has fields %v", first)
	}
	if second["a"] != "1" || second["g.b"] != "2" || second["remedy"] != nil {
		t.Errorf("a warning has fields %v", second)
	}
	quiet, none := observer.New(zapcore.ErrorLevel)
	if handler := handlerOf(zap.New(quiet)); handler.Enabled(t.Context(), slog.LevelError) {
		t.Error("a level that is not logged is enabled")
	}
	if none.Len() > 0 {
		t.Errorf("logged are %+v", none.All())
	}
}

// TestWhatLibp2pRepeatsIsLimited, with a count of what was left out once it is released.
func TestWhatLibp2pRepeatsIsLimited(t *testing.T) {
	core, logged := observer.New(zapcore.DebugLevel)
	release := BridgeLogs(zap.New(core))
	part := gologshim.Logger("swarm-of-another-test")
	const lines = 1000
	for range lines {
		part.Error("failed to upgrade a connection", "remote", "10.0.0.1")
	}
	written := logged.Len()
	if written == 0 || written > 10 {
		t.Errorf("%d lines of %d, want a few", written, lines)
	}
	release()
	if told := logged.All()[logged.Len()-1].ContextMap()["left_out"]; told != uint64(lines-written) {
		t.Errorf("%v are said to be left out, want %d", told, lines-written)
	}
}
