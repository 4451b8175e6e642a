package wire

import (
	"errors"
	"testing"
)

// TestDigestPartnersAreBounded shows that a digest tells of no more partners than fit,
// and of as many as it says.
func TestDigestPartnersAreBounded(t *testing.T) {
	body := Digest{Met: MaxDigestPartners}.Append(nil)
	at := len(body) - MaxDigestPartners*12 - 1
	for _, count := range []byte{MaxDigestPartners + 1, 255, MaxDigestPartners - 1, 0} {
		body[at] = count
		var d Digest
		if err := d.Decode(body); !errors.Is(err, ErrMessage) {
			t.Errorf("a digest of %d partners that says %d: %v", MaxDigestPartners, count, err)
		}
	}
	body[at] = MaxDigestPartners
	var d Digest
	if err := d.Decode(body); err != nil || d.Met != MaxDigestPartners {
		t.Errorf("%d partners: %v", d.Met, err)
	}
}
