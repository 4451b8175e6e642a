package prepare

import (
	"encoding/json"
	"testing"
)

// A sketch whose count is not that of its numbers would have fences and bins that are no numbers at all members.
func TestSketchesOfOtherCounts(t *testing.T) {
	for _, text := range []string{
		`{"levels":[],"count":5,"compacted":[]}`, `{"levels":[[1,2]],"count":1,"compacted":[0]}`, `{"levels":[[1],[2]],"count":2,"compacted":[0,0]}`,
	} {
		if err := json.Unmarshal([]byte(text), &Sketch{}); err == nil {
			t.Errorf("%s was read", text)
		}
	}
	var s, other, read Sketch
	for i := range 10001 {
		s.Add(float64(i * 7919 % 10007))
		other.Add(float64(i))
	}
	s.Merge(&other)
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil || read.Count != 20002 {
		t.Errorf("a sound one of %g: %v", read.Count, err)
	}
}
