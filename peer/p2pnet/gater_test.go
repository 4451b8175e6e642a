package p2pnet

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/seed-97356399/murmuration/peer/transport"
)

var errStranger = errors.New("no friend of ours")

// Whoever is not admitted is refused at the connection, whichever end dials, and both
// ends are told why: who dials by an error, who is dialled by one line in its log.
func TestGaterKeepsStrangersOut(t *testing.T) {
	var closed atomic.Pointer[transport.PeerID]
	config := loopback()
	log, logs := logged()
	config.Log = log
	config.Admit = func(id transport.PeerID) error {
		if out := closed.Load(); out != nil && *out == id {
			return errStranger
		}
		return nil
	}
	host, guest := start(t, config), start(t, loopback())
	handle(t, host, speak, run, echo)
	handle(t, guest, speak, run, echo)
	guest.Learn(host.Self(), host.Addresses())
	host.Learn(guest.Self(), guest.Addresses())
	if got := ask(t, open(t, guest, host, speak, run), "in"); got != "in" {
		t.Fatalf("a peer that is admitted hears %q", got)
	}
	id := guest.Self()
	closed.Store(&id)
	host.Disconnect(id)
	eventually(t, "disconnected", func() bool { return host.Connections() == 0 && guest.Connections() == 0 })

	for range 2 {
		// Where the guest is writing as the host hangs up, TCP may drop the host's last word.
		eventually(t, "the guest is let in no more, and told why", func() bool {
			s, err := guest.Open(t.Context(), host.Self(), speak, run)
			if err == nil {
				_, err = s.Read(make([]byte, 1))
				s.Reset()
			}
			if err == nil {
				t.Fatal("the guest is let in")
			}
			return errors.Is(err, transport.ErrNotAdmitted)
		})
	}
	lines := logs.FilterMessageSnippet("refused a connection").All()
	if len(lines) == 0 || len(lines) > 3 || lines[0].ContextMap()["peer"] != string(id) || lines[0].ContextMap()["error"] != errStranger.Error() {
		t.Errorf("the host has logged %v, want a few lines that name the guest and say why", lines)
	}
	_, err := host.Open(t.Context(), id, speak, run)
	if !errors.Is(err, transport.ErrNotAdmitted) || !errors.Is(err, errStranger) {
		t.Errorf("the host is told %v, want %v", err, errStranger)
	}
	if _, err := host.Connect(t.Context(), hostPort(t, guest)); !errors.Is(err, errStranger) {
		t.Errorf("a join of a stranger: %v, want %v", err, errStranger)
	}
	closed.Store(nil)
	if got := ask(t, open(t, guest, host, speak, run), "again"); got != "again" {
		t.Errorf("admitted again, it hears %q", got)
	}
}
