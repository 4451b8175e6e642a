package swim

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// keys encrypt messages, with the first key, and decrypt with any. The format is that of
// memberlist's keyring, AES-GCM; it is done here, so that memberlist receives only messages
// that have been checked.
type keys []cipher.AEAD

const (
	sealVersion = 1
	gcmNonce    = 12
	// sealOverhead is what a seal adds: version, nonce and tag.
	sealOverhead = 1 + gcmNonce + 16
	// sealHeader is what stands before a seal on a stream: a type and a size.
	sealHeader = 1 + 4
)

var errNotSealed = errors.New("is not encrypted with a key of this run: see that all peers have the same keys (Config.GossipKeys)")

func newKeys(raw [][]byte) (keys, error) {
	var all keys
	for i, key := range raw {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("taking key %d: %w", i, err)
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("taking key %d: %w", i, err)
		}
		all = append(all, gcm)
	}
	return all, nil
}

func (k keys) overhead() int {
	if len(k) == 0 {
		return 0
	}
	return sealOverhead
}

func (k keys) seal(packet []byte) []byte {
	if len(k) == 0 {
		return packet
	}
	return k.append(make([]byte, 0, sealOverhead+len(packet)), packet, nil)
}

func (k keys) append(b, plain, bound []byte) []byte {
	b = append(b, sealVersion)
	at := len(b)
	b = append(b, make([]byte, gcmNonce)...)
	rand.Read(b[at:]) // never fails
	return k[0].Seal(b, b[at:at+gcmNonce], plain, bound)
}

func (k keys) open(packet []byte) ([]byte, error) {
	if len(k) == 0 {
		return packet, nil
	}
	return k.decrypt(packet, nil)
}

func (k keys) decrypt(sealed, bound []byte) ([]byte, error) {
	if len(sealed) < sealOverhead || sealed[0] != sealVersion {
		return nil, errNotSealed
	}
	nonce, code := sealed[1:1+gcmNonce], sealed[1+gcmNonce:]
	for _, key := range k {
		if plain, err := key.Open(nil, nonce, code, bound); err == nil {
			return plain, nil
		}
	}
	return nil, errNotSealed
}

func (k keys) sealMessage(message []byte) []byte {
	if len(k) == 0 {
		return message
	}
	b := append(make([]byte, 0, sealHeader+sealOverhead+len(message)), messageEncrypt)
	b = binary.BigEndian.AppendUint32(b, uint32(sealOverhead+len(message)))
	return k.append(b, message, b[:sealHeader:sealHeader])
}
