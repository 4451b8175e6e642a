// Package loglimit keeps a log readable, and the disk from filling, whatever other peers do. Lines with the same
// message (one cause) are limited for each partner that they name and over all partners, and the lines left out are
// counted.
//
// The partner is the field "peer" of a line. So messages must be constant, with variables in fields, and every line
// that another peer can cause must name that peer in "peer". Debug lines, and those that end the program, are not
// limited.
//
// Limits: only messages tell causes apart, and with very many messages or partners counts are added together.
// docs/design/029-lines-that-others-cause.md has the reasons. Package peer and its adapters limit the logs that they
// are given.
package loglimit

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Partner is the field of a line that names the peer who caused it.
const Partner = "peer"

// Limit returns a log that writes lines within the limits to log. rest writes the counts that no line has reported;
// call it at the end. A log that is limited already is returned unchanged, with a rest that does nothing.
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

// core passes on the lines that its ledger allows.
type core struct {
	zapcore.Core
	ledger  *ledger
	partner string // from fields that all lines have
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
		if to := c.Core.Check(e, nil); to != nil { // there may be several cores below, each with its own level
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
