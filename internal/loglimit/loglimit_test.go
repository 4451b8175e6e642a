package loglimit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// counted sums what lines tell of lines that were left out, and the lines themselves.
func counted(t *testing.T, lines []observer.LoggedEntry) (total uint64) {
	t.Helper()
	for _, l := range lines {
		fields := l.ContextMap()
		for _, name := range []string{"left_out", "left_out_of_others"} {
			if n, ok := fields[name]; ok {
				total += n.(uint64)
			}
		}
		if fields["line"] == nil { // else it is a count alone
			total++
		}
	}
	return total
}

// one is a log with what is written to it, in virtual time.
func one(t *testing.T, f func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func())) {
	synctest.Test(t, func(t *testing.T) {
		to, written := observer.New(zapcore.DebugLevel)
		log, rest := Limit(zap.New(to))
		f(t, log, written, rest)
	})
}

const refused = "refused a stream that speaks otherwise"

// TestAFloodOfOnePartnerIsAHandfulOfLinesWithACount is the flood that was measured: 30,244
// lines in ten seconds of one stranger.
func TestAFloodOfOnePartnerIsAHandfulOfLinesWithACount(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		const flood = 30244
		for range flood {
			log.Warn(refused, zap.String(Partner, "stranger"))
			time.Sleep(10 * time.Second / flood)
		}
		if n := written.Len(); n > 5 {
			t.Errorf("%d lines of one stranger in ten seconds, want a handful", n)
		}
		time.Sleep(partnerEvery)
		log.Warn(refused, zap.String(Partner, "stranger"))
		lines := written.All()
		if left := lines[len(lines)-1].ContextMap()["left_out"]; left != uint64(flood-partnerBurst) {
			t.Errorf("the next line tells of %v left out, want %d", left, flood-partnerBurst)
		}
		rest()
		if n := counted(t, written.All()); n != flood+1 {
			t.Errorf("the log accounts for %d lines of %d", n, flood+1)
		}
	})
}

// TestPartnersDoNotSilenceEachOther: while one floods, another's line is written.
func TestPartnersDoNotSilenceEachOther(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		for range 1000 {
			log.Info("an exchange broke off", zap.String(Partner, "a"))
		}
		log.Info("an exchange broke off", zap.String(Partner, "b"), zap.Int("slices", 7))
		log.Warn("another cause", zap.String(Partner, "a"))
		if n := written.FilterField(zap.String(Partner, "b")).Len(); n != 1 {
			t.Errorf("%d lines of the other partner, want 1", n)
		}
		if written.FilterMessage("another cause").Len() != 1 {
			t.Error("another cause of the same partner is not written")
		}
	})
}

// TestMadeUpPartnersDoNotHelp: a name for each line brings no more than a few.
func TestMadeUpPartnersDoNotHelp(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		const flood = 5 * maxPartners // accounts are forgotten meanwhile, and their counts are not
		for i := range flood {
			log.Warn(refused, zap.String(Partner, fmt.Sprint("made up ", i)))
			time.Sleep(time.Minute / flood)
		}
		if n, most := written.Len(), causeBurst+int(time.Minute/causeEvery)+1; n > most {
			t.Errorf("%d lines in a minute of %d names, want %d at most", n, flood, most)
		}
		rest()
		if n := counted(t, written.All()); n != flood {
			t.Errorf("the log accounts for %d lines of %d", n, flood)
		}
	})
}

// TestLinesThatNameNobodyAreLimitedToo: 265 lines of one message after a freeze.
func TestLinesThatNameNobodyAreLimitedToo(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		for range 265 {
			log.Warn("handler queue full")
		}
		if n := written.Len(); n > causeBurst {
			t.Errorf("%d lines at once, want %d", n, causeBurst)
		}
		rest()
		if n := counted(t, written.All()); n != 265 {
			t.Errorf("the log accounts for %d lines of 265", n)
		}
	})
}

// TestCountsDoNotWaitForTheirCause: once a flood is over, any later line brings what it
// has left out.
func TestCountsDoNotWaitForTheirCause(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		for range 100 {
			log.Warn(refused, zap.String(Partner, "stranger"))
		}
		time.Sleep(tellEvery)
		log.Info("role")
		told := written.FilterMessage("lines were left out of the log").All()
		if len(told) != 1 || told[0].ContextMap()["line"] != refused || told[0].ContextMap()["left_out"] != uint64(100-partnerBurst) || told[0].Level != zap.WarnLevel {
			t.Errorf("told %+v, want %d lines left out", told, 100-partnerBurst)
		}
		rest()
		if n := counted(t, written.All()); n != 101 {
			t.Errorf("the log accounts for %d lines of 101", n)
		}
	})
}

// TestCausesAreBoundedAndCounted: messages that vary, as a library's may, are forgotten
// with their counts told.
func TestCausesAreBoundedAndCounted(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		const each = 2 * causeBurst
		for i := range 2 * maxCauses {
			for range each {
				log.Warn(fmt.Sprint("cause ", i))
			}
		}
		rest()
		if n := counted(t, written.All()); n != 2*maxCauses*each {
			t.Errorf("the log accounts for %d lines of %d", n, 2*maxCauses*each)
		}
	})
}

// TestWhatIsLeftAlone: lines for debugging, fields, names and levels of what is passed on.
func TestWhatIsLeftAlone(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		again, none := Limit(log.With(zap.String("self", "me")).Named("part"))
		if _, twice := again.Core().(*core).Core.(*core); twice {
			t.Error("a limited log is limited again")
		}
		for range 1000 {
			again.Debug("detail")
		}
		if n := written.TakeAll(); len(n) != 1000 {
			t.Errorf("%d lines for debugging of 1000", len(n))
		}
		none()
		again.With(zap.Stringer(Partner, time.Second)).Error("trouble", zap.Int("n", 1))
		line := written.TakeAll()[0]
		if fields := line.ContextMap(); line.LoggerName != "part" || fields["self"] != "me" || fields[Partner] != "1s" || fields["n"] != int64(1) || len(fields) != 3 {
			t.Errorf("the line is %+v with %v", line, fields)
		}
	})
	to, written := observer.New(zapcore.WarnLevel)
	log, rest := Limit(zap.New(zapcore.NewTee(to, zapcore.NewNopCore())))
	for range 1000 {
		log.Info("not wanted")
	}
	rest()
	if written.Len() > 0 {
		t.Errorf("a core for warnings gets %v", written.All())
	}
}

// TestPartnerOfAStringer: a partner is the same whether its id is a text or says its name,
// and in the fields of a line or of all lines.
func TestPartnerOfAStringer(t *testing.T) {
	one(t, func(t *testing.T, log *zap.Logger, written *observer.ObservedLogs, rest func()) {
		for range 10 {
			log.Warn(refused, zap.String(Partner, "1s"))
			log.Warn(refused, zap.Stringer(Partner, time.Second))
			log.With(zap.Stringer(Partner, time.Second)).Warn(refused)
		}
		if n := written.Len(); n != partnerBurst {
			t.Errorf("%d lines of one partner, want %d", n, partnerBurst)
		}
	})
}

// TestConcurrentLinesAreAllCounted is for the race detector.
func TestConcurrentLinesAreAllCounted(t *testing.T) {
	to, written := observer.New(zapcore.DebugLevel)
	log, rest := Limit(zap.New(to))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 1000 {
				log.Warn(refused, zap.Int("n", j), zap.String(Partner, fmt.Sprint(i*j%5)))
			}
		})
	}
	all.Wait()
	rest()
	if n := counted(t, written.All()); n != 4000 {
		t.Errorf("the log accounts for %d lines of 4000", n)
	}
}
