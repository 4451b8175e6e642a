package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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
	config := zap.NewDevelopmentEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
	config.EncodeLevel = zapcore.LowercaseLevelEncoder
	config.ConsoleSeparator = "  "
	config.CallerKey, config.StacktraceKey = "", ""
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(out)), level))
}
