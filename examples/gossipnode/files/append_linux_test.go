package files

import "testing"

// A head that cannot be written is a fault.
func TestAppendToAFullDisk(t *testing.T) {
	l, err := Append("/dev/full", false, "head\n")
	if err == nil {
		_ = l.Close()
		t.Error("no fault")
	}
}
