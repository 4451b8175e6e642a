package p2pnet

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/gologshim"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/internal/loglimit"
)

// logRemedy is the advice that goes with libp2p's warnings, which concern single
// connections and resolve themselves.
const logRemedy = "nothing, if it happens once: libp2p tries again; if it repeats, see whether the peer's address and port can be reached (Admission.Inquire of package peer asks it), and that both ends have the same release"

// bridged receives libp2p's log; after release, dropped receives it. Both are global because
// libp2p's log is: each part of libp2p asks for the handler once and keeps it.
var (
	bridged atomic.Pointer[zap.Logger]
	dropped = zap.NewNop()
)

// BridgeLogs writes libp2p's own log to log, for the whole process, instead of standard
// error: errors as warnings, warnings as information, information as debug messages.
// Programs call it before the first transport is made; libraries do not. Release ends it:
// later lines are dropped.
func BridgeLogs(log *zap.Logger) (release func()) {
	limited, logOmitted := loglimit.Limit(log)
	named := limited.Named("libp2p")
	bridged.Store(named)
	gologshim.SetDefaultHandler(logHandler{to: bridged.Load})
	return func() {
		bridged.CompareAndSwap(named, dropped)
		logOmitted()
	}
}

// logHandler writes records of package slog to a zap logger.
type logHandler struct {
	to     func() *zap.Logger
	fields []zap.Field
	group  string // prefix for the names of later fields
}

func handlerOf(log *zap.Logger) slog.Handler {
	return logHandler{to: func() *zap.Logger { return log }}
}

// levelOf is the level at which a record is logged here, and false for those that are
// too many to be of use.
func levelOf(level slog.Level) (zapcore.Level, bool) {
	switch {
	case level >= slog.LevelError:
		return zapcore.WarnLevel, true
	case level >= slog.LevelWarn:
		return zapcore.InfoLevel, true
	}
	return zapcore.DebugLevel, level >= slog.LevelInfo
}

func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	at, useful := levelOf(level)
	return useful && h.to().Core().Enabled(at)
}

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	level, _ := levelOf(r.Level)
	entry := h.to().Check(level, r.Message)
	if entry == nil {
		return nil
	}
	fields := slices.Clone(h.fields)
	r.Attrs(func(a slog.Attr) bool {
		fields = append(fields, h.field(a))
		return true
	})
	if level >= zapcore.WarnLevel {
		fields = append(fields, zap.String("remedy", logRemedy))
	}
	entry.Write(fields...)
	return nil
}

// field is an attribute as a field. Values are written out: they are libp2p's own, and
// seldom anything but text.
func (h logHandler) field(a slog.Attr) zap.Field {
	return zap.String(h.group+a.Key, a.Value.Resolve().String())
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.fields = slices.Clone(h.fields)
	for _, a := range attrs {
		h.fields = append(h.fields, h.field(a))
	}
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler {
	h.group += name + "."
	return h
}
