// Package loglimit keeps a log readable, and the disk that it is written to from filling,
// whatever others do: lines of one cause, which is their message, are limited by the
// partner that they name and over all partners, and what was left out is counted.
//
// A partner is the field "peer" of a line. So messages are constant, with what varies in
// fields, and every line that somebody else can bring about names that one in "peer".
// Lines for debugging, and those that end the program, are left alone.
//
// Limits: lines are told apart by their messages alone, and among very many messages or
// partners counts of single ones are summed up. docs/design/029-lines-that-others-cause.md
// has the reasons. Package peer and its adapters limit the logs they are given.
package loglimit

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Partner is the field of a line that names who has caused it.
const Partner = "peer"

// Limit returns a log that writes to log what is within the limits. rest writes the counts
// that no later line has told; it is for the end. A log that is limited already is
// returned as it is, and its rest is left to whoever has limited it.
func Limit(log *zap.Logger) (limited *zap.Logger, rest func()) {
	if _, ok := log.Core().(*core); ok {
		return log, func() {}
	}
	l := newLedger()
	limited = log.WithOptions(zap.WrapCore(func(inner zapcore.Core) zapcore.Core {
		return &core{Core: inner, ledger: l}
	}))
	bare := log.Core()
	return limited, func() { tell(bare, l.rest()) }
}

// core passes on what its ledger has room for.
type core struct {
	zapcore.Core
	ledger  *ledger
	partner string // of the fields that all lines have
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.Core.With(fields), c.ledger, partnerOf(fields, c.partner)}
}

func (c *core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	switch {
	case e.Level < zapcore.InfoLevel || e.Level > zapcore.ErrorLevel:
		return c.Core.Check(e, to)
	case c.Enabled(e.Level):
		return to.AddCore(e, c)
	}
	return to
}

func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	left, pass := c.ledger.take(cause{e.LoggerName, e.Message}, partnerOf(fields, c.partner), e)
	if pass {
		if to := c.Core.Check(e, nil); to != nil { // cores below may be several, each with a level of its own
			to.Write(append(fields[:len(fields):len(fields)], left.fields()...)...)
		}
	}
	tell(c.Core, c.ledger.due(e.Time))
	return nil
}

func partnerOf(fields []zapcore.Field, before string) string {
	for _, f := range fields {
		if f.Key != Partner {
			continue
		}
		if f.Type == zapcore.StringType {
			return f.String
		}
		into := zapcore.NewMapObjectEncoder()
		f.AddTo(into)
		if text, ok := into.Fields[Partner].(string); ok {
			return text
		}
	}
	return before
}

func tell(to zapcore.Core, counts []omitted) {
	for _, u := range counts {
		e := u.last
		line := e.Message
		e.Message, e.Stack = "lines were left out of the log", ""
		if checked := to.Check(e, nil); checked != nil {
			checked.Write(append([]zapcore.Field{zap.String("line", line)}, u.fields()...)...)
		}
	}
}
