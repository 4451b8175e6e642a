package standing

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// maxTold bounds the members that one answer tells of.
const maxTold = 4096

// TellMembers answers somebody who asks for the members.
func TellMembers(t *framed.Stream, members []wire.Member) {
	for _, m := range members[:min(len(members), maxTold)] {
		if framed.Say(t, 0, m) != nil {
			t.Reset()
			return
		}
	}
	t.Finish()
}

// AskMembers asks a member for all members that it knows. A refusal is a *wire.Refusal.
func AskMembers(ctx context.Context, over seam.Dialer, run string, member seam.PeerID, stall time.Duration) (told []wire.Member, err error) {
	stream, err := over.Open(ctx, member, seam.ProtocolMembers, run)
	if err == nil {
		err = new(framed.Stream).Converse(ctx, stream, stall, func(t *framed.Stream) (err error) {
			told, err = hearMembers(t)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s who takes part: %w", member, err)
	}
	return told, nil
}

// hearMembers reads members until the other end has no more to tell.
func hearMembers(t *framed.Stream) (told []wire.Member, err error) {
	if err := t.CloseWrite(); err != nil {
		return nil, err
	}
	t.Limit(wire.MaxMember)
	for {
		header, payload, err := t.Next()
		switch {
		case err == io.EOF:
			return told, nil
		case err != nil:
			return nil, fmt.Errorf("waiting for %v: %w", wire.TypeMember, err)
		case header.Type == wire.TypeRefuse:
			return nil, wire.Refused(payload)
		case header.Type != wire.TypeMember:
			return nil, fmt.Errorf("waiting for %v: got %v: %w", wire.TypeMember, header.Type, wire.ErrType)
		case len(told) == maxTold:
			return nil, fmt.Errorf("more than %d members: %w", maxTold, wire.ErrMessage)
		}
		var m wire.Member
		if err := m.Decode(slices.Clone(payload)); err != nil {
			return nil, err
		}
		told = append(told, m)
	}
}
