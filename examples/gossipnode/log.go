package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// newLog makes a log for people: a time, a level, what happened.
func (s outputSettings) newLog(out io.Writer) *zap.Logger {
	level, err := zapcore.ParseLevel(s.LogLevel)
	if err != nil {
		level = zapcore.InfoLevel // validate has seen to it
	}
	if s.Verbose {
		level = zapcore.DebugLevel
	}
	return cli.NewLog(level, out)
}
