package swim

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/time/rate"
)

// logWriter takes memberlist's lines and logs them at the level that they begin
// with, or for debugging only once stopping is closed: a shutdown makes it
// complain about the very errors that end its goroutines.
type logWriter struct {
	log      *zap.Logger
	stopping <-chan struct{}
	ordinary *rate.Limiter // denials that are nothing to act on
	beyond   *rate.Limiter // warnings of more
}

// A peer that comes back denies what was said of its earlier life: up to denialBurst such
// lines, and one more every denialEvery, are told for information only, and of those beyond all
// but one in beyondEvery.
const (
	denialBurst = 3
	denialEvery = 20 * time.Second
)

func newLogWriter(log *zap.Logger, stopping <-chan struct{}) io.Writer {
	return logWriter{log: log.Named("memberlist"), stopping: stopping, ordinary: rate.NewLimiter(rate.Every(denialEvery), denialBurst), beyond: rate.NewLimiter(rate.Every(beyondEvery), 1)}
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
		if c.sign == denial && (w.ordinary.Allow() || !w.beyond.Allow()) {
			level = zapcore.InfoLevel
		}
		w.log.Log(level, c.message, zap.String("line", text), zap.String("remedy", c.remedy))
	default:
		w.log.Log(level, "memberlist tells", zap.String("line", text))
	}
	return len(line), nil
}

// denial begins the lines with which a peer denies what is said of it.
const denial = "Refuting"

// complaint is what a line of memberlist's is about: a message that is the same for all
// lines of its kind, by which they are limited, and what to do about it.
type complaint struct{ sign, message, remedy string }

// complaints are those of memberlist, by what its lines hold. The first that fits counts.
var complaints = []complaint{
	{denial, "this peer was taken for dead, and says otherwise", "nothing; if it repeats, this machine or its network is overloaded"},
	{"queue full", "news of members come faster than they are read", "nothing, if this process stood still before; if it repeats, this machine is overloaded"},
	{"timeout", "a member does not answer in time", "if it repeats: see whether the member's address and port can be reached (Admission.Inquire of package peer asks it)"},
	{"Failed to send", "a member could not be sent news", "if it repeats: see whether the member's address and port can be reached (Admission.Inquire of package peer asks it)"},
	{"Push/Pull", "memberships could not be compared", "nothing, if it happens once: the next member is asked; if it repeats, see whether members can be reached (Admission.Inquire of package peer asks it)"},
	{"", "memberlist complains", "nothing, if it happens once: the protocol goes on; if it repeats, see that all peers have the same release"},
}

func complaintOf(line string) complaint {
	return complaints[slices.IndexFunc(complaints, func(c complaint) bool { return strings.Contains(line, c.sign) })]
}
