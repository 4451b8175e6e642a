package swim

import (
	"bytes"
	"io"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logWriter takes memberlist's lines and logs them at the level that they begin
// with, or for debugging only once stopping is closed: a shutdown makes it
// complain about the very errors that end its goroutines.
type logWriter struct {
	log      *zap.Logger
	stopping <-chan struct{}
}

func newLogWriter(log *zap.Logger, stopping <-chan struct{}) io.Writer {
	return logWriter{log: log.Named("memberlist"), stopping: stopping}
}

// levels maps memberlist's tags. Its errors are about single messages and peers,
// which the protocol survives, so they are warnings here.
var levels = map[string]zapcore.Level{
	"DEBUG": zapcore.DebugLevel,
	"INFO":  zapcore.InfoLevel,
	"WARN":  zapcore.WarnLevel,
	"ERR":   zapcore.WarnLevel,
	"ERROR": zapcore.WarnLevel,
}

// vetoed begins the lines with which memberlist repeats a veto of ours, which
// was logged with its reason already, or was none worth a line.
const vetoed = "ignoring alive message for"

// Write implements io.Writer; it takes one line.
func (w logWriter) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	level := zapcore.InfoLevel
	if tag, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "] "); ok && strings.HasPrefix(text, "[") {
		if known, ok := levels[tag]; ok {
			level, text = known, rest
		}
	}
	select {
	case <-w.stopping:
		level = zapcore.DebugLevel
	default:
	}
	text = strings.TrimPrefix(text, "memberlist: ")
	switch {
	case strings.HasPrefix(text, vetoed):
	case level >= zapcore.WarnLevel:
		c := complaintOf(text)
		w.log.Log(level, c.message, zap.String("line", text), zap.String("remedy", c.remedy))
	default:
		w.log.Log(level, "memberlist tells", zap.String("line", text))
	}
	return len(line), nil
}
