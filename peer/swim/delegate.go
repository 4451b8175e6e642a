package swim

import (
	"github.com/hashicorp/memberlist"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// delegate is the Membership as memberlist calls it, mostly under its node lock:
// nothing here blocks or calls memberlist.
type delegate Membership

var (
	_ memberlist.Delegate      = (*delegate)(nil)
	_ memberlist.AliveDelegate = (*delegate)(nil)
	_ memberlist.EventDelegate = (*delegate)(nil)
)

// NotifyAlive implements memberlist.AliveDelegate: an error vetoes the news.
func (d *delegate) NotifyAlive(node *memberlist.Node) error {
	peer := transport.PeerID(node.Name)
	err := error(errWrongPlace)
	if node.Addr.Equal(advertiseIP(peer)) && node.Port == advertisePort {
		err = d.book.admit(peer, node.Meta)
	}
	// Old news keeps arriving for a while after newer: that is no fault.
	if err != nil && err != errOldRecord {
		d.log.Warn("refused news of a member: its record does not hold", zap.String("peer", string(peer)), zap.Error(err))
	}
	return err
}

func (d *delegate) NotifyJoin(node *memberlist.Node) {
	d.book.setAlive(transport.PeerID(node.Name), true)
}

// NotifyLeave implements memberlist.EventDelegate, for those who left and for
// those who crashed.
func (d *delegate) NotifyLeave(node *memberlist.Node) {
	d.book.setAlive(transport.PeerID(node.Name), false)
	d.carrier.forsake(transport.PeerID(node.Name))
}

// NotifyUpdate implements memberlist.EventDelegate; NotifyAlive saw the record. The node is
// alive: the book may have forgotten that with the peer, for want of room.
func (d *delegate) NotifyUpdate(node *memberlist.Node) {
	d.book.setAlive(transport.PeerID(node.Name), true)
}

func (d *delegate) NodeMeta(int) []byte { return d.book.own.nodeMeta() }

// NotifyMsg implements memberlist.Delegate; user messages are not used.
func (d *delegate) NotifyMsg([]byte) {}

func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

func (d *delegate) LocalState(bool) []byte { return nil }

func (d *delegate) MergeRemoteState([]byte, bool) {}
