package exchange

import (
	"encoding/binary"
	"fmt"
	"io"
)

// order tells the passive side which transfers follow on a pipe, and how many.
type order struct {
	kind  orderKind
	times uint32
}

type orderKind byte

const (
	// orderSwap moves the bytes of an exchange in both directions at the same time.
	orderSwap orderKind = iota + 1
	// orderNaive sends the whole vector, averages it, and sends the mean back.
	orderNaive
	// orderPingPong moves the bytes of an exchange forth, and then back.
	orderPingPong
)

const (
	orderSize = 5
	// maxOrderTimes bounds the transfers of one order.
	maxOrderTimes = 1 << 20
	// orderDone is the passive side's answer when it is done.
	orderDone = 1
)

func receiveOrder(from io.Reader) (o order, err error) {
	var b [orderSize]byte
	if _, err = io.ReadFull(from, b[:]); err != nil {
		return o, err
	}
	o = order{kind: orderKind(b[0]), times: binary.LittleEndian.Uint32(b[1:])}
	if o.kind < orderSwap || o.kind > orderPingPong || o.times < 1 || o.times > maxOrderTimes {
		return o, fmt.Errorf("no such order: %v", b)
	}
	return o, nil
}

func readDone(p pipe) error {
	var b [1]byte
	if _, err := io.ReadFull(p, b[:]); err != nil {
		return err
	}
	if b[0] != orderDone {
		return fmt.Errorf("the other process ends with %d, not with %d", b[0], orderDone)
	}
	return nil
}
