// Package token is what joins a run: a short text with the addresses of members, the name of
// the run, who began it and, if it is to let in who has it, the run's key.
package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Prefix begins every token; the number is that of its form.
const Prefix = "murmuration1"

// Lasts is for how long a token is good unless somebody says otherwise.
const Lasts = 7 * 24 * time.Hour

// Bounds of a token.
const (
	maxAddresses = 4
	maxLength    = 2 << 10 // of its text
	sumSize      = 4
)

// ErrInvalid: a text that looks like a token is none.
var ErrInvalid = errors.New("no whole token: copy all of it, from " + Prefix + " on")

// Token is an invitation.
type Token struct {
	// Run is the name of the run.
	Run string `json:"r"`
	// Peer is the id of the member at the addresses, which are multiaddrs without it or
	// host:port.
	Peer      string   `json:"p"`
	Addresses []string `json:"a"`
	// Founder is the id of who began the run and signed its description; empty if it has
	// none.
	Founder string `json:"f,omitempty"`
	// Secret is the run's key, empty if it has none or the token is not to hold it.
	Secret []byte `json:"k,omitempty"`
	// Expires is when it is of no use any more, in seconds since 1970; 0 is never. Who joins
	// looks at its own clock: nobody else's is believed.
	Expires int64 `json:"e,omitempty"`
}

// written is a token as it is written. Older releases read one without a founder where it is Own.
type written struct {
	Token
	Own bool `json:"o,omitempty"` // the member has begun the run: its id is not written twice
}

// Is tells whether a text looks like a token.
func Is(text string) bool { return strings.HasPrefix(text, Prefix) }

// Of makes a token of the addresses at which a member is joined, with its id at their end.
func Of(run, peer string, addresses []string) Token {
	t := Token{Run: run, Peer: peer}
	for _, address := range addresses {
		if len(t.Addresses) < maxAddresses {
			t.Addresses = append(t.Addresses, strings.TrimSuffix(address, "/p2p/"+peer))
		}
	}
	return t
}

// String is the text of a token.
func (t Token) String() string {
	c := written{Token: t, Own: t.Founder == t.Peer && t.Peer != ""}
	if c.Own {
		c.Founder = ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "" // of texts and bytes it never fails
	}
	sum := sha256.Sum256(text)
	return Prefix + base64.RawURLEncoding.EncodeToString(append(sum[:sumSize], text...))
}

// Parse reads the text of a token.
func Parse(text string) (t Token, err error) {
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), Prefix)
	data, err := base64.RawURLEncoding.DecodeString(coded)
	if !ok || err != nil || len(text) > maxLength || len(data) < sumSize {
		return t, ErrInvalid
	}
	if sum := sha256.Sum256(data[sumSize:]); !bytes.Equal(sum[:sumSize], data[:sumSize]) {
		return t, ErrInvalid
	}
	var c written
	if err := json.Unmarshal(data[sumSize:], &c); err != nil || c.Run == "" || len(c.Addresses) == 0 || len(c.Addresses) > maxAddresses {
		return t, ErrInvalid
	}
	if c.Own {
		c.Founder = c.Peer
	}
	return c.Token, nil
}

// Join are the addresses to join, each with the id of the member there.
func (t Token) Join() []string {
	joined := make([]string, len(t.Addresses))
	for i, address := range t.Addresses {
		if joined[i] = address; t.Peer != "" && strings.HasPrefix(address, "/") {
			joined[i] += "/p2p/" + t.Peer
		}
	}
	return joined
}

// Expired fails if the token is of no use any more.
func (t Token) Expired(now time.Time) error {
	if t.Expires == 0 || now.Unix() < t.Expires {
		return nil
	}
	return fmt.Errorf("the token was good until %s: ask for a new one (gossipnode invite)", time.Unix(t.Expires, 0).UTC().Format(time.RFC3339))
}
