package secure

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// secured is the TLS end of the peer of a seed.
func secured(t *testing.T, seed byte) *TLS {
	t.Helper()
	s, err := New(private(t, seed), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func private(t *testing.T, seed byte) crypto.PrivKey {
	t.Helper()
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func idOf(t *testing.T, seed byte) peer.ID {
	t.Helper()
	id, err := peer.IDFromPrivateKey(private(t, seed))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// shake makes a connection between two peers, both of which must be content with it.
func shake(t *testing.T, from, to sec.SecureTransport, want peer.ID) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a pipe waits for its reader, for ever after a refusal
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		_, err := to.SecureInbound(ctx, far, "")
		accepted <- err
	}()
	// Who dials hears of the other's refusal only afterwards.
	if _, err := from.SecureOutbound(ctx, near, want); err != nil {
		t.Errorf("%v: who dials: %v", time.Now().UTC().Year(), err)
	}
	if err := <-accepted; err != nil {
		t.Errorf("%v: who is dialled: %v", time.Now().UTC().Year(), err)
	}
}

// Two peers connect whatever their clocks show, and however these move meanwhile: one
// end begins today and the other in 2000, where virtual time begins; both are then told
// that it is 2020 and 2090.
func TestClocksThatDisagree(t *testing.T) {
	today := secured(t, 1)
	synctest.Test(t, func(t *testing.T) {
		then := secured(t, 2)
		shake(t, then, today, idOf(t, 1))
		shake(t, today, then, idOf(t, 2))
		for _, year := range []int{2020, 2090} {
			time.Sleep(time.Until(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
			shake(t, then, today, idOf(t, 1))
			shake(t, today, then, idOf(t, 2))
			shake(t, secured(t, 3), then, idOf(t, 2))
		}
	})
}

// What a peer shows is valid to one that does look at dates, an earlier release say, in
// any year that its clock may show; and what such a one shows is taken here, whatever
// the clock was that wrote its dates.
func TestCertificatesAtAnyDate(t *testing.T) {
	ours, theirs := secured(t, 1), private(t, 2)
	config, _ := ours.identity.ConfigForPeer("")
	certificate, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	itself := x509.NewCertPool()
	itself.AddCert(certificate)
	certificate.UnhandledCriticalExtensions = nil
	for _, year := range []int{1970, 2020, 2026, 2090, 9998} {
		at := time.Date(year, 1, 1, 0, 0, 1, 0, time.UTC)
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: itself, CurrentTime: at}); err != nil {
			t.Errorf("ours in %d: %v", year, err)
		}
		dated, err := libp2ptls.NewIdentity(theirs, libp2ptls.WithCertTemplate(&x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{SerialNumber: "1"}, NotBefore: at.Add(-time.Hour), NotAfter: at.Add(time.Hour),
		}))
		if err != nil {
			t.Fatal(err)
		}
		shown, _ := dated.ConfigForPeer("")
		if key, err := provedKey(shown.Certificates[0].Certificate, idOf(t, 2)); err != nil || !key.Equals(theirs.GetPublic()) {
			t.Errorf("one of %d: %v", year, err)
		}
	}
}

// A certificate is still held against the identity, and against its signature.
func TestCertificatesProveTheKey(t *testing.T) {
	config, _ := secured(t, 1).identity.ConfigForPeer("")
	shown := config.Certificates[0].Certificate
	if _, err := provedKey(shown, idOf(t, 2)); err == nil {
		t.Error("one peer passes for another")
	} else if mismatch, ok := errors.AsType[sec.ErrPeerIDMismatch](err); !ok || mismatch.Actual != idOf(t, 1) {
		t.Errorf("one peer instead of another: %v", err)
	}
	for name, chain := range map[string][][]byte{
		"none": {}, "two": {shown[0], shown[0]}, "bytes": {{1, 2, 3}},
		"cut": {shown[0][:len(shown[0])-1]},
	} {
		if _, err := provedKey(chain, ""); err == nil {
			t.Errorf("a certificate is taken: %s", name)
		}
	}
	for i := range shown[0] {
		altered := slices.Clone(shown[0])
		altered[i] ^= 1
		if key, err := provedKey([][]byte{altered}, ""); err == nil && !key.Equals(private(t, 1).GetPublic()) {
			t.Fatalf("with byte %d altered it proves another key", i)
		}
	}
}
