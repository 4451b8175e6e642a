package checkpoint

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestEveryFlippedBitOfACheckpointIsSeen, of the length of its header, of the header and
// of the values, by what resumes and by what inspects.
func TestEveryFlippedBitOfACheckpointIsSeen(t *testing.T) {
	c, shape := testFolder(t), []int{3}
	if err := c.Probe(); err != nil {
		t.Fatal(err)
	}
	path := keep(t, c, 9, shape, nil)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	put := func(at int, b byte) {
		if _, err := file.WriteAt([]byte{b}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	header := 8 + int(binary.LittleEndian.Uint64(whole))
	unseen := map[string]int{}
	for bit := range 8 * len(whole) {
		put(bit/8, whole[bit/8]^1<<(bit%8))
		part := "values"
		if bit/8 < header {
			part = "header"
		}
		if taken, err := Read(c, path, smallParams(t, shape...)); err == nil {
			if unseen["resuming, "+part]++; unseen["resuming, "+part] == 1 {
				t.Errorf("bit %d, near %q, is not seen: %+v", bit, whole[max(bit/8-20, 0):min(bit/8+20, len(whole))], taken.Checkpoint)
			}
		}
		if found, err := Open(path); err == nil && found.Intact() == nil {
			unseen["opening, "+part]++
		}
		put(bit/8, whole[bit/8])
	}
	if len(unseen) > 0 {
		t.Errorf("of %d bits of the header and %d of the values are not seen: %v", 8*header, 8*(len(whole)-header), unseen)
	}
	if _, err := Read(c, path, smallParams(t, shape...)); err != nil {
		t.Errorf("whole it is refused: %v", err)
	}
}

// TestOlderFormatsAreRefused: nothing was released that wrote them. One of this format needs
// both checksums.
func TestOlderFormatsAreRefused(t *testing.T) {
	c := testFolder(t)
	if err := c.Probe(); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{formatName + "2": "it is of format 2", checkpointFormat: "does not fit its checksum"} {
		params := smallParams(t, 3)
		metadata := c.describe(params.Layout(), time.Now())
		if err := progressMetadata(metadata, behindOf(9), optim.State{}); err != nil {
			t.Fatal(err)
		}
		metadata[keyFormat], metadata[keySum] = format, checksum(params.Vector())
		path, err := c.save(params, metadata)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(c, path, smallParams(t, 3)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", format, err, want)
		}
	}
}

// TestModelsOfOtherProgramsAreSound: what is no checkpoint has no checksums.
func TestModelsOfOtherProgramsAreSound(t *testing.T) {
	if err := intact(smallParams(t, 3), map[string]string{keyFormat: "pt"}); err != nil {
		t.Error(err)
	}
	layout, err := tensor.NewLayout(tensor.Spec{Name: "a", Shape: []int{2}}, tensor.Spec{Name: "b", Shape: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if metadata := map[string]string{"ab": "c", "k": ""}; headerSum(metadata, layout) == headerSum(map[string]string{"a": "bc", "k": ""}, layout) {
		t.Error("where a key ends does not count")
	}
}
