package bridge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/tensor"
)

// layoutField is the field of a description that tells models apart, range by range.
const layoutField = "layout"

// layoutDigits is how many characters of it a range has: one of 4,096 different ranges goes unnoticed.
const layoutDigits = 2

// LayoutField is a field for the run's description (peer.Network.Description), by which a trainer with
// another model than the run's learns which range is the first that differs. Of a model with more than 200
// ranges it covers the first 200.
func LayoutField(layout *tensor.Layout) description.Field {
	var b strings.Builder
	for i := range min(layout.Count(), description.MaxValue/layoutDigits) {
		sum := crc32.ChecksumIEEE([]byte(rangeText(layout.At(i))))
		b.WriteString(base64.RawURLEncoding.EncodeToString([]byte{byte(sum), byte(sum >> 8)})[:layoutDigits])
	}
	return description.Field{Name: layoutField, Value: b.String()}
}

func rangeText(r tensor.Range) string {
	return fmt.Sprintf("%q %v, %v, %v", r.Name, r.Shape, r.Kind, r.Sharing)
}

// otherModel is the refusal of a model that differs from the run's, or nil if the error has another cause.
func otherModel(layout *tensor.Layout, err error) *Refusal {
	mismatch, ok := errors.AsType[*description.MismatchError](err)
	if !ok {
		return nil
	}
	for _, d := range mismatch.Differences {
		if d.Field != layoutField {
			continue
		}
		at := 0
		for at < min(len(d.Here), len(d.There)) && d.Here[at] == d.There[at] {
			at++
		}
		at /= layoutDigits
		const remedy = "join with the model that the others train: the same names, shapes and kinds in the same order"
		ours, theirs := layout.Count(), fmt.Sprint(len(d.There)/layoutDigits)
		if len(d.There) == description.MaxValue {
			theirs += " or more"
		}
		if at >= ours {
			return refuse(CodeRun, remedy, "the model of the run is another: after the last range here, %s, it goes on, with %s ranges in all", rangeText(layout.At(ours-1)), theirs)
		}
		return refuse(CodeRun, remedy, "the model of the run is another: the first range that differs is %s, number %d of %d here and %s there", rangeText(layout.At(at)), at+1, ours, theirs)
	}
	return nil
}
