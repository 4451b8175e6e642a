package p2pnet

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// TestPagesAreOfHTTPServers, with a status line or without.
func TestPagesAreOfHTTPServers(t *testing.T) {
	for first, want := range map[string]bool{"HTTP/": true, "<!DOC": true, "<html": true, "": false, "\x13/mul": false, "SSH-2": false} {
		if isHTTP([]byte(first)) != want {
			t.Errorf("%q: %v", first, !want)
		}
	}
}

// TestAnHTTPServerIsNamed where a peer was to be joined, by an address with an id or without.
func TestAnHTTPServerIsNamed(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	at := strings.TrimPrefix(web.URL, "http://")
	a := start(t, Config{Listen: []string{}})
	for _, text := range []string{at, "/ip4/127.0.0.1/tcp/" + at[strings.LastIndex(at, ":")+1:] + "/p2p/" + string(start(t, Config{Listen: []string{}}).Self())} {
		_, err := a.Connect(t.Context(), text)
		if !errors.Is(err, ErrNotAPeer) || !errors.Is(err, seam.ErrUnreachable) || !strings.Contains(err.Error(), "an HTTP server answers there") {
			t.Errorf("connecting to %s: %v", text, err)
		}
	}
	if _, err := a.Connect(t.Context(), freeAddress(t)); errors.Is(err, ErrNotAPeer) {
		t.Errorf("where nobody listens: %v", err)
	}
}
