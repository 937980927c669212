package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// signers is a file with the public keys whose signatures users trust, in the format of ssh-keygen. Whoever makes a release
// adds their own key to it.
const signers = "docs/allowed_signers"

// sign signs SHA256SUMS in a folder with an SSH key, and then checks the signature as users do. key is the file of a private
// key, which may need a passphrase, or of a public key whose private key is in an SSH agent.
func sign(folder, key, signers string) error {
	sums := filepath.Join(folder, "SHA256SUMS")
	command := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", key, sums)
	command.Stdin, command.Stderr = os.Stdin, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("signing SHA256SUMS: %w", err)
	}
	file, err := os.Open(sums)
	if err != nil {
		return err
	}
	defer file.Close()
	command = exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "mcpx", "-n", "file", "-s", sums+".sig")
	command.Stdin = file
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nobody could check the signature: is the public key, with the name mcpx before it, a line of %s?\n%s", signers, said)
	}
	return nil
}
