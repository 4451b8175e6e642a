package checkpoint

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAge shows that a keeper which has never saved grows old too: otherwise the metric
// would be silent about a folder in which nothing can be saved.
func TestAge(t *testing.T) {
	if age, kept := (*Keeper)(nil).Age(); kept {
		t.Errorf("nothing is kept, and is %v old", age)
	}
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(KeeperConfig{})
		time.Sleep(time.Minute)
		if age, kept := k.Age(); !kept || age != time.Minute {
			t.Errorf("a minute after the start without a checkpoint the age is %v, %v", age, kept)
		}
	})
}
