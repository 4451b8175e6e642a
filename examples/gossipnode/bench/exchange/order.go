package exchange

import (
	"encoding/binary"
	"fmt"
	"io"
)

// order tells the passive side what to do with a pipe, and how often.
type order struct {
	kind  orderKind
	times uint32
}

type orderKind byte

const (
	// orderSwap moves the bytes of an exchange both ways at once.
	orderSwap orderKind = iota + 1
	// orderNaive moves the whole vector there, averages it, and moves the mean back.
	orderNaive
	// orderTrade moves the whole vectors both ways at once, and averages at both ends.
	orderTrade
	// orderPingPong moves the bytes of an exchange there, and then back.
	orderPingPong
)

const (
	orderSize = 5
	// maxOrderTimes bounds what one order can ask for.
	maxOrderTimes = 1 << 20
	// orderDone is what the passive side says when it is done.
	orderDone = 1
)

func (o order) send(to io.Writer) error {
	var b [orderSize]byte
	b[0] = byte(o.kind)
	binary.LittleEndian.PutUint32(b[1:], o.times)
	_, err := to.Write(b[:])
	return err
}

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

// lead carries an order out at the active side, and returns when both are done.
func (l *load) lead(p pipe, o order) error {
	err := o.send(p)
	for range o.times {
		if err == nil {
			err = l.leadOnce(p, o.kind)
		}
	}
	if err == nil {
		err = readDone(p)
	}
	if err != nil {
		return fmt.Errorf("moving the bytes of a reference: %w", err)
	}
	return nil
}

func (l *load) leadOnce(p pipe, kind orderKind) error {
	switch kind {
	case orderSwap:
		return l.swap(p, l.forth, l.back)
	case orderTrade:
		return l.trade(p)
	case orderNaive:
		err := l.say(p)
		if err == nil {
			err = l.hear(p)
		}
		if err == nil {
			l.adopt()
		}
		return err
	}
	err := l.write(p, l.forth)
	if err == nil {
		err = l.discard(p, l.back)
	}
	return err
}

// follow carries one order out at the passive side.
func (l *load) follow(p pipe, o order) error {
	for range o.times {
		if err := l.followOnce(p, o.kind); err != nil {
			return err
		}
	}
	_, err := p.Write([]byte{orderDone})
	return err
}

func (l *load) followOnce(p pipe, kind orderKind) error {
	switch kind {
	case orderSwap:
		return l.swap(p, l.back, l.forth)
	case orderTrade:
		return l.trade(p)
	case orderNaive:
		err := l.hear(p)
		if err == nil {
			l.average()
			err = l.say(p)
		}
		return err
	}
	err := l.discard(p, l.forth)
	if err == nil {
		err = l.write(p, l.back)
	}
	return err
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
