// Package invite is the command invite: a token by which another machine joins a run.
package invite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// timeout bounds the inquiry at one address.
const timeout = 10 * time.Second

// invitation is the output.
type invitation struct {
	Token     string   `json:"token"`
	Addresses []string `json:"addresses"`
	Run       string   `json:"run"`
}

// String is only the token, which suits a pipe.
func (i invitation) String() string { return i.Token + "\n" }

// Command makes the command invite.
func Command(std cli.Streams) *cobra.Command {
	var (
		s       settings.Settings
		expiry  time.Duration
		withKey bool
	)
	cmd := &cobra.Command{
		Use:   "invite",
		Short: "Print a token by which another machine joins a run",
		Long: `Invite asks the members at --join for their run, and prints a token: a short text that
another machine gives to run --join, with nothing else but its data. It holds the
addresses as they are given here, so give those by which the other machine reaches
them. Run and local print such a token too when they begin.

With --with-key the token holds the key of --run-key: whoever reads it may take part, and
so may who sees the command line of run --join, which lists of processes (ps) show to all
users of a machine: put it into a file for --config there, or into GOSSIPNODE_JOIN.
How long it is good the machine that joins finds out by its own clock.`,
		Example: `  gossipnode invite --join 192.0.2.7:4001
  gossipnode invite --join 192.0.2.7:4001 --run-key run.key --with-key --expires 1h
  gossipnode run --join $(gossipnode invite --join 192.0.2.7:4001)`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			if err := sources.Usage(s.Network.Faults()...); err != nil {
				return err
			}
			switch {
			case len(s.Join) == 0:
				return cli.Usagef("invite needs --join, the address of a member")
			case withKey && s.RunKey == "":
				return cli.Usagef("--with-key needs --run-key, the file of the key")
			case expiry <= 0:
				return cli.Usagef("--expires %s: want a time in the future", expiry)
			}
			defer p2pnet.BridgeLogs(zap.NewNop())()
			t, err := tokenOf(cmd.Context(), s, withKey)
			if err != nil {
				return err
			}
			t.Expires = time.Now().Add(expiry).Unix()
			return cli.Print(invitation{Token: t.String(), Addresses: t.Join(), Run: t.Run}, s.JSON, std)
		},
	}
	s.RegisterMember(cmd.Flags())
	cmd.Flags().DurationVar(&expiry, "expires", token.Lasts, "for how long the token is good")
	cmd.Flags().BoolVar(&withKey, "with-key", false, "put the key of --run-key into the token: as an argument of run --join, lists of processes show it")
	cli.TakeFile(cmd.Flags())
	return cmd
}

// tokenOf asks the members and makes a token with the addresses of those that answer.
func tokenOf(ctx context.Context, s settings.Settings, withKey bool) (t token.Token, err error) {
	admission, tr, err := s.Outside(zap.NewNop())
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	t.Run = s.Run
	var faults []error
	for _, address := range s.Join {
		found, err := inquire(ctx, admission, tr, address, s.Run)
		switch {
		case err != nil:
			faults = append(faults, err)
		case t.Peer == "" || t.Peer == string(found.Peer):
			t.Peer, t.Founder = string(found.Peer), string(found.Signer)
			t.Addresses = append(t.Addresses, token.Of(s.Run, t.Peer, []string{multiaddr(address)}).Addresses...)
		default:
			faults = append(faults, fmt.Errorf("%s is another member than the address before: make a token for each", address))
		}
	}
	if withKey {
		t.Secret = admission.RunKey
	}
	if len(faults) > 0 {
		return t, fmt.Errorf("making a token: %w", errors.Join(faults...))
	}
	return t, nil
}

// inquire asks one address, with an empty layout: a refusal because of that is no error.
func inquire(ctx context.Context, admission peer.Admission, tr transport.Transport, address, run string) (peer.Inquiry, error) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := admission.Inquire(within, tr, address, run, [32]byte{})
	if errors.Is(err, transport.ErrLayout) {
		err = nil
	}
	if remedy := settings.Remedy(err); remedy != "" {
		err = fmt.Errorf("%w: %s", err, remedy)
	}
	return found, err
}

// multiaddr converts an address to one that can have an id at its end.
func multiaddr(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.HasPrefix(address, "/") {
		return address
	}
	kind := "dns"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		kind = "ip4"
	} else if err == nil {
		kind = "ip6"
	}
	return "/" + kind + "/" + host + "/tcp/" + port
}
