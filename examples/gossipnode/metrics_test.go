package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

// TestMetrics shows that a peer's numbers are served, and no more once closed.
func TestMetrics(t *testing.T) {
	server, err := listenMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := server.listener.Addr().String()
	if _, err := listenMetrics(address); err == nil || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("an address in use: error %v", err)
	}
	server.serve(func() peer.Stats {
		return peer.Stats{Steps: 12, Loss: 0.5, Members: 3, Exchanges: peer.ExchangeStats{
			Initiated: 4, Served: 5, BytesSent: 6, Links: []peer.LinkStats{{Partner: "p", Codec: "lattice6+4", Rate: 7, Round: time.Second}},
		}}
	})
	defer http.DefaultClient.CloseIdleConnections()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"murmuration_steps_total 12\n", "murmuration_loss 0.5\n", "murmuration_members 3\n",
		`murmuration_exchanges_total{outcome="served"} 5`, `murmuration_bytes_total{direction="sent"} 6`,
		`murmuration_link_bytes_per_second{codec="lattice6+4",partner="p"} 7`, `murmuration_link_round_trip_seconds{partner="p"} 1`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for range 2 {
		if err := server.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
	if _, err := http.Get("http://" + address + "/metrics"); err == nil {
		t.Error("it still serves")
	}
}
