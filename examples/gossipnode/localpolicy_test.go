package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
)

// runProcesses runs two peers that are processes, with a model of several slices. On a crowded machine an exchange may be late.
func runProcesses(t *testing.T, args ...string) (r result.Result, logged string) {
	t.Helper()
	var out, text bytes.Buffer
	args = append([]string{"local", "--peers", "2", "--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--batch", "10", "--json"}, args...)
	cmd := command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &text
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &text)
	}
	r = lastLine(t, out.String())
	if r.TestAccuracy.Min < 0.95 || r.Exchanges == 0 || r.Failed > max(2, r.Exchanges/10) || r.PeersLost > 0 {
		t.Errorf("%+v\n%s", r, &text)
	}
	return r, text.String()
}

// TestLocalPolicies shows that processes code what they exchange as they are told:
// by flags, and by a file.
func TestLocalPolicies(t *testing.T) {
	t.Parallel()
	file := clitest.WriteFile(t, "policy.yaml", "codec: bf16\nrules:\n- {range: 0.weight, codec: lattice6+4, quantized: 50}\n")
	for _, c := range []struct {
		name        string
		args        []string
		codec       string
		least, most float64 // bits a parameter
	}{
		// 6 and 4 bits are a mean of 5, headers add to it, and the first exchange is of halves.
		{"lattice", []string{"--codec", "lattice6+4"}, "lattice6+4", 5, 7},
		{"half of it", []string{"--codec", "lattice6+4", "--quantized", "50"}, "lattice6+4", 10, 12.5},
		{"a file", []string{"--policy", file}, "bf16", 10, 12.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, _ := runProcesses(t, append(c.args, "--steps", "800", "--every", "5")...)
			t.Logf("%.2f bits a parameter in %d exchanges", r.BitsPerParameter, r.Exchanges)
			if bits := float64(r.BitsPerParameter); bits < c.least || bits > c.most || r.Codec != c.codec || len(r.Links) > 0 {
				t.Errorf("%.2f bits a parameter, want %g to %g; codec %s, links %+v", bits, c.least, c.most, r.Codec, r.Links)
			}
		})
	}
}

// TestLocalAutoTellsCodecs shows that where links decide, the result and the log tell
// on what.
func TestLocalAutoTellsCodecs(t *testing.T) {
	t.Parallel()
	r, logged := runProcesses(t, "--codec", quant.Auto, "--steps", "800", "--every", "5", "--log-level", "info")
	if r.Codec != quant.Auto || len(r.Links) != 1 {
		t.Fatalf("codec %s, links %+v", r.Codec, r.Links)
	}
	l := r.Links[0]
	if !strings.HasPrefix(l.Codec, "lattice") || l.Peer == l.Partner || l.BytesPerSecond <= 0 || l.RoundTripSeconds <= 0 || l.Exchanges == 0 {
		t.Errorf("link %+v", l)
	}
	for _, want := range []string{
		transport.PeerID(l.Peer).Short() + " to " + transport.PeerID(l.Partner).Short() + ": " + l.Codec, // in the summary
		"the link to a partner decides on its codec", "bytes_per_second", "how exchanges are coded",
	} {
		if !strings.Contains(logged, want) {
			t.Errorf("no %q in\n%s", want, logged)
		}
	}
}
