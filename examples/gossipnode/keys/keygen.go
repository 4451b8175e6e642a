package keys

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
)

// Command makes the command keygen, which makes an identity.
func Command(std cli.Streams) *cobra.Command {
	var (
		out         string
		force, text bool
		forRun      bool
	)
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make an identity for a peer or an operator",
		Long: `Keygen makes an Ed25519 key, writes it to a file that only its owner can read
(PEM, PKCS #8), and prints the peer id that belongs to it. An operator's key is
such a key too: peers are given its id with run --operator, and control its file.
With --run-key it makes a secret instead, that all peers of a run share to keep
others out.`,
		Example: `  gossipnode keygen --out node.key
  gossipnode run --key node.key
  gossipnode run --operator $(gossipnode keygen --out operator.key)
  gossipnode keygen --run-key --out run.key`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := cli.Resolve(cmd); err != nil {
				return err
			}
			if out == "" {
				return cli.Usagef("keygen needs --out, the file to write the key to")
			}
			if forRun {
				if err := writeKey(out, newRunKey(), force); err != nil || !text {
					return err
				}
				return json.NewEncoder(std.Out).Encode(map[string]string{"run_key": out})
			}
			id, err := Generate(out, force)
			if err != nil {
				return err
			}
			if text {
				return json.NewEncoder(std.Out).Encode(map[string]string{"peer": id, "key": out})
			}
			fmt.Fprintln(std.Out, id)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "file to write the key to")
	flags.BoolVar(&force, "force", false, "overwrite a file that is there: its identity is lost")
	flags.BoolVar(&forRun, "run-key", false, "make a key for a run instead of an identity")
	flags.BoolVar(&text, "json", false, "print one JSON object")
	cli.TakeFile(flags)
	return cmd
}

// Generate writes a new key and returns its peer id.
func Generate(path string, force bool) (string, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	id, err := ID(key)
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	text, err := Encode(key)
	if err != nil {
		return "", err
	}
	if err := writeKey(path, text, force); err != nil {
		return "", err
	}
	return string(id), nil
}

// writeKey writes a key. If it fails, an old key remains.
func writeKey(path string, text []byte, force bool) error {
	write := files.Create
	if force {
		write = files.Replace
	}
	err := write(path, Mode, files.Text(text))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the key: %s is there already: choose another file, or overwrite it with --force", path)
	}
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	return nil
}
