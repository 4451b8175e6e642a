package framed

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatIsLate: beyond Until nothing is read or sent any more, and the error is the
// caller's word for that, until the stream begins anew.
func TestWhatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := begun(coded(t, 1, 10))
		late := errors.New("late")
		s.Until, s.Late = time.Now().Add(time.Second), late
		if err := s.Send(coded(t, 2, 10)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := s.Send(coded(t, 3, 10)); err != late || len(w.writes) != 1 {
			t.Errorf("sending: %v after %d writes, want %v after one", err, len(w.writes), late)
		}
		if _, _, err := s.Next(); err != late {
			t.Errorf("reading: %v, want %v", err, late)
		}
		s.Begin(w, time.Second)
		if err := s.Send(coded(t, 4, 10)); err != nil {
			t.Errorf("sending on the next stream: %v", err)
		}
	})
}
