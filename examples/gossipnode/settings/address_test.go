package settings

import "testing"

// TestMultiaddr shows which multiaddrs are well-formed.
func TestMultiaddr(t *testing.T) {
	const id = "/p2p/12D3KooWGRUVh3XwaZuvSNhg4vd3a1T9aYXTBnKNgUY4gKLqVNn5"
	for _, good := range []string{"/ip4/1.2.3.4/tcp/9", "/ip4/1.2.3.4/tcp/9" + id, "/ip6/::1/tcp/0" + id, "/dns/a.example/tcp/65535", "/dns4/a/tcp/1" + id, "/dns6/a/tcp/1"} {
		if !isMultiaddr(good) {
			t.Errorf("%s refused", good)
		}
	}
	for _, bad := range []string{
		"", "/", "/ip4/1.2.3.4", "/ip4/1.2.3/tcp/9", "/ip4/::1/tcp/9", "/ip6/1.2.3.4/tcp/9", "/ip4/1.2.3.4/udp/9", "/ip4/1.2.3.4/tcp/65536",
		"/ip4/1.2.3.4/tcp/9/", "/ip4/1.2.3.4/tcp/9/p2p/", "/ip4/1.2.3.4/tcp/9/p2p/xyz", "/dns//tcp/9", "/tcp/9/ip4/1.2.3.4", "x/ip4/1.2.3.4/tcp/9", id,
	} {
		if isMultiaddr(bad) {
			t.Errorf("%s let through", bad)
		}
	}
}
