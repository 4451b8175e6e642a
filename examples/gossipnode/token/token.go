// Package token is the token for joining a run: a short text with addresses of members, the name of the run, the peer
// that began it, and, if wanted, the run's key.
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

// Prefix is the start of every token; the number is the version of the format.
const Prefix = "murmuration1"

// Lasts is the default lifetime of a token.
const Lasts = 7 * 24 * time.Hour

// Bounds of a token.
const (
	maxAddresses = 4
	maxLength    = 2 << 10 // of the text
	sumSize      = 4
)

// ErrInvalid: the text begins like a token but is not one.
var ErrInvalid = errors.New("no whole token: copy all of it, from " + Prefix + " on")

// Token is an invitation.
type Token struct {
	// Run is the name of the run.
	Run string `json:"r"`
	// Peer is the id of the member at the addresses. These are multiaddrs without the id, or host:port.
	Peer      string   `json:"p"`
	Addresses []string `json:"a"`
	// Founder is the id of the peer that began the run and signed its description; "" if the run has no description.
	Founder string `json:"f,omitempty"`
	// Secret is the run's key; empty if the run has none or the token must not contain it.
	Secret []byte `json:"k,omitempty"`
	// Expires is the end of the token's lifetime, in seconds since 1970; 0 is never. A peer that joins uses its own
	// clock.
	Expires int64 `json:"e,omitempty"`
}

// written is the JSON of a token. Older releases can read one without a founder if Own is set.
type written struct {
	Token
	Own bool `json:"o,omitempty"` // the member has begun the run, so its id is written once
}

// Is tells whether a text begins like a token.
func Is(text string) bool { return strings.HasPrefix(text, Prefix) }

// Of makes a token from the addresses of a member, which end with its id.
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
		return "" // texts and bytes can always be encoded
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

// Join returns the addresses to join, each with the id of its member.
func (t Token) Join() []string {
	joined := make([]string, len(t.Addresses))
	for i, address := range t.Addresses {
		if joined[i] = address; t.Peer != "" && strings.HasPrefix(address, "/") {
			joined[i] += "/p2p/" + t.Peer
		}
	}
	return joined
}

// Expired returns an error if the token's lifetime has ended.
func (t Token) Expired(now time.Time) error {
	if t.Expires == 0 || now.Unix() < t.Expires {
		return nil
	}
	return fmt.Errorf("the token was good until %s: ask for a new one (gossipnode invite)", time.Unix(t.Expires, 0).UTC().Format(time.RFC3339))
}
