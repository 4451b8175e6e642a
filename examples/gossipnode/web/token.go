package web

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"

	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
)

const (
	// tokenBytes is the number of random bytes in a token that is drawn; minToken and MaxToken bound a given one.
	tokenBytes = 32
	minToken   = 16
	MaxToken   = 256
)

// Local is the address to listen at: on this machine only, unless a host is named.
func Local(given string) (string, error) {
	host, port, err := net.SplitHostPort(given)
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), err
}

// IsLocal tells whether only this machine reaches an address.
func IsLocal(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// NamesMachine tells whether the host of a request is an IP address or localhost. The owner of any other name could let
// it point here, so that a page under that name, in a browser on this machine, reaches what listens on this machine.
func NamesMachine(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

var tokenForm = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_-]{%d,%d}$`, minToken, MaxToken))

// Token reads a token from a file, or draws one if the file's name is "".
func Token(file string) (string, error) {
	if file == "" {
		random := make([]byte, tokenBytes)
		rand.Read(random) // never fails
		return base64.RawURLEncoding.EncodeToString(random), nil
	}
	text, err := files.Read(file, 2*MaxToken)
	if err != nil {
		return "", fmt.Errorf("reading a token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if !tokenForm.MatchString(token) {
		return "", fmt.Errorf("reading a token: %s holds no %d to %d letters, digits, - and _ that nobody can guess", file, minToken, MaxToken)
	}
	return token, nil
}
