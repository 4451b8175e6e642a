package cli

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLog makes a log for people: time, level, message.
func NewLog(level zapcore.Level, out io.Writer) *zap.Logger {
	config := zap.NewDevelopmentEncoderConfig()
	config.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
	config.EncodeLevel = zapcore.LowercaseLevelEncoder
	config.ConsoleSeparator = "  "
	config.CallerKey, config.StacktraceKey = "", ""
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(out)), level))
}
