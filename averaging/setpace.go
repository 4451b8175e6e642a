package averaging

import "fmt"

// SetPace replaces the pace from now on; what has been measured stays. It is to be
// called where Handle is.
func (m *ADPSGD) SetPace(pace Pace) error {
	if err := pace.Validate(); err != nil {
		return fmt.Errorf("another pace: %w", err)
	}
	m.config.Pace = pace.withDefaults()
	return nil
}
