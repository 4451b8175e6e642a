package arrival

import (
	"testing"

	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A member that brings again what the founder has said before, or what he has not signed, neither has that passed on nor
// keeps the others from what they have found.
func TestRenewAmongLiars(t *testing.T) {
	network := memnet.New(memnet.Config{})
	identity := func(name string) transport.Identity {
		tr, err := network.Transport(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tr.Close() })
		return tr
	}
	founder, second := identity("founder"), identity("second")
	sign := func(by transport.Identity, d description.Description) description.Signed {
		s, err := description.Sign(by, d)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	data := description.Field{Name: "data", Value: "csv"}
	before := description.Of("digits", data)
	now := description.Of("digits", data, description.Field{Name: "preparation", Value: "7"})
	old, founders, own := sign(founder, before), sign(founder, now), sign(second, now)
	forged := description.Signed{Text: own.Text, Signer: old.Signer, Signature: own.Signature}
	for _, said := range [][]description.Signed{{old, founders, own}, {forged, founders, own}, {{}, own, founders}, {old, forged, own}} {
		d, err := NewDescribed(second, before)
		if err != nil {
			t.Fatal(err)
		}
		d.held = old
		if err := d.Renew(now, said); err != nil {
			t.Error(err)
			continue
		}
		if held, err := d.Held().Open(second, "digits"); err != nil || len(held.Fields) != 2 {
			t.Errorf("it passes on %v, %v", held, err)
		}
	}
	d, err := NewDescribed(second, before)
	if err == nil {
		err = d.Renew(now, []description.Signed{forged, {}})
	}
	if err == nil {
		t.Error("nothing sound was taken for something")
	}
}
