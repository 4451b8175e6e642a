package description_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// identity is one of a network in memory.
func identity(t *testing.T, name string) transport.Identity {
	t.Helper()
	tr, err := memnet.New(memnet.Config{}).Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func mnist() description.Description {
	return description.Of("digits", description.Field{Name: "model", Value: "mlp"},
		description.Field{Name: "batch", Value: "32", Local: true}, description.Field{Name: "data", Value: "mnist"})
}

func TestDifferences(t *testing.T) {
	there := description.Of("digits", description.Field{Name: "data", Value: "fashion"}, description.Field{Name: "batch", Value: "8"},
		description.Field{Name: "model", Value: "mlp"}, description.Field{Name: "of a later release", Value: "x"})
	harmful, local := description.Split(mnist().Differences(there))
	if want := []description.Difference{{Field: "data", Here: "mnist", There: "fashion"}}; !slices.Equal(harmful, want) {
		t.Errorf("harmful: %v", harmful)
	}
	if want := []description.Difference{{Field: "batch", Here: "32", There: "8", Local: true}}; !slices.Equal(local, want) {
		t.Errorf("local: %v", local)
	}
	err := &description.MismatchError{Peer: "p", Differences: harmful}
	if !strings.Contains(err.Error(), "data is mnist here and fashion there") {
		t.Error(err)
	}
}

func TestSignedDescriptions(t *testing.T) {
	founder, other := identity(t, "founder"), identity(t, "other")
	signed, err := description.Sign(founder, mnist())
	if err != nil || !signed.Known() || (description.Signed{}).Known() {
		t.Fatal(err)
	}
	d, err := signed.Open(other, "digits")
	if value, ok := d.Value("data"); err != nil || !ok || value != "mnist" || signed.Signer != founder.Self() {
		t.Errorf("%+v, %v", d, err)
	}
	for name, bad := range map[string]description.Signed{
		"another text":   {Text: bytes.Replace(signed.Text, []byte("mnist"), []byte("other"), 1), Signer: signed.Signer, Signature: signed.Signature},
		"another signer": {Text: signed.Text, Signer: other.Self(), Signature: signed.Signature},
		"too long":       {Text: make([]byte, description.MaxText+1), Signer: signed.Signer, Signature: signed.Signature},
	} {
		if _, err := bad.Open(other, "digits"); !errors.Is(err, description.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := signed.Open(other, "letters"); !errors.Is(err, description.ErrInvalid) {
		t.Errorf("another run: %v", err)
	}
}

func TestFaultsOfDescriptions(t *testing.T) {
	d := description.Description{Run: "digits", Fields: []description.Field{
		{Name: "b", Value: "a line\n"}, {Name: "a", Value: strings.Repeat("x", description.MaxValue+1)}, {Name: "", Value: ""},
	}}
	err := d.Validate()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{`field "b": a value of 7 bytes`, `field "a" after "b"`, `a value of 401 bytes`, `name ""`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := description.Sign(identity(t, "founder"), d); err == nil {
		t.Error("it was signed")
	}
}

// FuzzOpen: any text is opened or refused, and what is opened is valid.
func FuzzOpen(f *testing.F) {
	tr, err := memnet.New(memnet.Config{}).Transport("founder")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"run":"digits","fields":[{"name":"data","value":"mnist"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		signature, err := tr.Sign(append([]byte("murmuration description 1\x00"), text...))
		if err != nil {
			t.Fatal(err)
		}
		d, err := description.Signed{Text: text, Signer: tr.Self(), Signature: signature}.Open(tr, "digits")
		if err == nil && d.Validate() != nil || err != nil && !errors.Is(err, description.ErrInvalid) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}
