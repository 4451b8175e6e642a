package decoded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// job in the environment has this program be a job of a test: it opens the recipe of a file, and tells what it decoded.
const job = "MURMURATION_DECODED_JOB"

func TestMain(m *testing.M) {
	if as := os.Getenv(job); as != "" {
		if err := work(as, os.Args[1], os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// work says that it is ready, and waits for the end of its input: one that "stays" does so while it decodes.
func work(as, dir, path string) error {
	await := func(word string) {
		fmt.Println(word)
		io.Copy(io.Discard, os.Stdin)
	}
	if as != "stays" {
		await("ready")
	}
	read, decoded := 0, 0
	file, err := (&Folder{Dir: dir}).Open(context.Background(), Recipe{Files: []string{path}}, func(w io.Writer) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read = len(b)
		for range 2 { // twice as many
			n, err := w.Write(b)
			if decoded += n; err != nil {
				return err
			}
			if as == "stays" {
				await("decodes")
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	fmt.Printf("%d %d %d\n", read, decoded, len(b))
	return err
}

// begin starts a job, and is what it says, and what has it go on.
func begin(t *testing.T, as string, f *Folder, path string) (cmd *exec.Cmd, says *bufio.Reader, goOn io.Closer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], f.Dir, path)
	cmd.Env, cmd.Stderr = append(os.Environ(), job+"="+as), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	says = bufio.NewReader(out)
	if line, err := says.ReadString('\n'); err != nil || line == "" {
		t.Fatalf("%q, error %v", line, err)
	}
	return cmd, says, in
}

// TestFourJobs: four processes that begin at once read and decode, all together, what one does.
func TestFourJobs(t *testing.T) {
	t.Parallel()
	f, path := folder(t), written(t, strings.Repeat("some bytes\n", 100_000))
	var says []*bufio.Reader
	var go4 []io.Closer
	for range 4 {
		_, s, g := begin(t, "job", f, path)
		says, go4 = append(says, s), append(go4, g)
	}
	for _, g := range go4 {
		g.Close()
	}
	read, decoded := 0, 0
	for _, s := range says {
		line, err := s.ReadString('\n')
		var r, d, has int
		if _, fault := fmt.Sscan(line, &r, &d, &has); fault != nil || err != nil || has != 2_200_000 {
			t.Fatalf("a job said %q, error %v, %v", line, err, fault)
		}
		read, decoded = read+r, decoded+d
	}
	if read != 1_100_000 || decoded != 2_200_000 {
		t.Errorf("four jobs read %d bytes and decoded %d; one reads 1,100,000 and decodes 2,200,000", read, decoded)
	}
}

// TestKilledJob: one that is killed while it decodes leaves nothing in the way of others.
func TestKilledJob(t *testing.T) {
	t.Parallel()
	f, path, times := folder(t), written(t, "some"), 0
	cmd, _, _ := begin(t, "stays", f, path)
	if kept := keptIn(t, f); len(kept) != 1 || !strings.HasSuffix(kept[0], ".partial") {
		t.Errorf("while it decodes there is %v", kept)
	}
	cmd.Process.Kill()
	if got, err := content(t, f, Recipe{Files: []string{path}}, double(path, &times)); got != "somesome" || err != nil || times != 1 {
		t.Errorf("%q, decoded %d times, error %v", got, times, err)
	}
	if kept := keptIn(t, f); len(kept) != 1 || strings.HasSuffix(kept[0], ".partial") {
		t.Errorf("there is %v", kept)
	}
}
