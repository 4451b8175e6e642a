package fetch

// publicSet is a data set that can be downloaded.
type publicSet struct {
	name string
	// bases are URLs of equivalent folders that have the files.
	bases []string
	files []publicFile
	// members are the wanted files in an archive, the only one of files, and folder is their folder in it. There are
	// none if files are wanted themselves.
	folder  string
	members []publicFile
}

// publicFile is a file with its size and hash.
type publicFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

// result returns the files that remain in the end.
func (s publicSet) result() []publicFile {
	if len(s.members) > 0 {
		return s.members
	}
	return s.files
}

// publicSets are the data sets that fetch knows. TensorFlow Datasets publishes the sums (url_checksums), and
// torchvision's port to Ruby those of the members of CIFAR's archives.
func publicSets() []publicSet {
	const cifarBatch = 10_000 * (1 + 3*32*32)
	return []publicSet{
		{
			name:  "mnist",
			bases: []string{"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"},
			files: []publicFile{
				{"train-images-idx3-ubyte.gz", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
				{"train-labels-idx1-ubyte.gz", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
				{"t10k-images-idx3-ubyte.gz", 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
				{"t10k-labels-idx1-ubyte.gz", 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
			},
		},
		{
			name:  "fashion-mnist",
			bases: []string{"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"},
			files: []publicFile{
				{"train-images-idx3-ubyte.gz", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
				{"train-labels-idx1-ubyte.gz", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
				{"t10k-images-idx3-ubyte.gz", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
				{"t10k-labels-idx1-ubyte.gz", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
			},
		},
		{
			name:   "cifar10",
			bases:  []string{"https://www.cs.toronto.edu/~kriz/"},
			files:  []publicFile{{"cifar-10-binary.tar.gz", 170_052_171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
			folder: "cifar-10-batches-bin",
			members: []publicFile{
				{"data_batch_1.bin", cifarBatch, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
				{"data_batch_2.bin", cifarBatch, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
				{"data_batch_3.bin", cifarBatch, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
				{"data_batch_4.bin", cifarBatch, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
				{"data_batch_5.bin", cifarBatch, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
				{"test_batch.bin", cifarBatch, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
			},
		},
		{
			name:   "cifar100",
			bases:  []string{"https://www.cs.toronto.edu/~kriz/"},
			files:  []publicFile{{"cifar-100-binary.tar.gz", 168_513_733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
			folder: "cifar-100-binary",
			members: []publicFile{
				{"train.bin", 50_000 * (2 + 3*32*32), "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
				{"test.bin", 10_000 * (2 + 3*32*32), "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"},
			},
		},
	}
}
