package dataset

import (
	"fmt"
	"testing"
)

// BenchmarkStream tells how many pictures a second one goroutine reads from each
// format, with flips and crops, and how many it shows of those it has kept.
func BenchmarkStream(b *testing.B) {
	const pictures, batch = 2000, 50
	plain, packed := samplesOf(b, 0, pictures, 32, 32), make([]member, 0, 2*pictures)
	folders := make(map[string][]byte)
	for k := range pictures {
		packed = append(packed, member{fmt.Sprintf("%06d.jpg", k), asJPEG(b, noise(uint64(k), 32, 32))}, plain[2*k+1])
		folders[fmt.Sprintf("train/class-%d/%d.png", k%10, k)] = plain[2*k].data
	}
	folders["test/class-0/0.png"] = plain[0].data
	one := archive(b, plain[:2]...)
	for _, c := range []struct {
		name   string
		files  map[string][]byte
		memory int64
	}{
		{"batches", map[string][]byte{"data_batch_1.bin": cifarBatch(0, pictures), "test_batch.bin": cifarBatch(0, 1)}, 1},
		{"tar-png", map[string][]byte{"train.tar": archive(b, plain...), "test.tar": one}, 1},
		{"tar-gz-jpeg", map[string][]byte{"train.tar.gz": zipped(b, archive(b, packed...)), "test.tar": one}, 1},
		{"folders-png", folders, 1},
		{"kept", map[string][]byte{"data_batch_1.bin": cifarBatch(0, pictures), "test_batch.bin": cifarBatch(0, 1)}, DefaultMemory},
	} {
		b.Run(c.name, func(b *testing.B) {
			data, err := Load(b.Context(), Config{Name: "cifar10", Dir: write(b, c.files), Memory: c.memory})
			if err != nil {
				b.Fatal(err)
			}
			stream, err := data.Batches(batch, 1, DefaultAugment("cifar10"))
			if err != nil {
				b.Fatal(err)
			}
			defer stream.Close()
			var into Batch
			for range pictures/batch + Ahead + 2 { // what is kept is there from the second pass on
				if err := stream.Next(&into); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := stream.Next(&into); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "pictures/s")
		})
	}
}
