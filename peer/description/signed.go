package description

import (
	"encoding/json"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// label begins what is signed, so that a signature of a description is none of anything
// else that the same key signs.
const label = "murmuration description 1\x00"

// Signed is a description as members pass it on: its text as who began the run wrote it.
// The zero value is that of a member that knows none.
type Signed struct {
	Text      []byte
	Signer    transport.PeerID
	Signature []byte
}

// Sign signs a description. It fails if the description is not valid.
func Sign(by transport.Identity, d Description) (Signed, error) {
	if err := d.Validate(); err != nil {
		return Signed{}, fmt.Errorf("describing run %q: %w", d.Run, err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return Signed{}, fmt.Errorf("describing run %q: %w", d.Run, err)
	}
	signature, err := by.Sign(append([]byte(label), text...))
	if err != nil {
		return Signed{}, fmt.Errorf("signing the description of run %q: %w", d.Run, err)
	}
	return Signed{Text: text, Signer: by.Self(), Signature: signature}, nil
}

// Known tells whether there is a description.
func (s Signed) Known() bool { return len(s.Text) > 0 }

// Open returns the description, or ErrInvalid if it is not signed by whom it names, or not
// one of this run. Fields of the text that this release does not know are passed over.
func (s Signed) Open(by transport.Identity, run string) (d Description, err error) {
	switch {
	case len(s.Text) > MaxText:
		err = fmt.Errorf("%d bytes", len(s.Text))
	case !by.Verify(s.Signer, append([]byte(label), s.Text...), s.Signature):
		err = fmt.Errorf("the signature is not that of %q", s.Signer)
	default:
		if err = json.Unmarshal(s.Text, &d); err == nil {
			err = d.Validate()
		}
		if err == nil && d.Run != run {
			err = fmt.Errorf("it is one of %q", d.Run)
		}
	}
	if err != nil {
		return Description{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return d, nil
}
