// Package pbkdf2 replaces the package of the standard library in the Pulumi CLI that tests start thousands of times. At
// each start, the CLI derives the key of a stack from its passphrase, and so slowly that passphrases cannot be guessed:
// most of the CPU time of an update that changes nothing.
package pbkdf2

import (
	"crypto/internal/fips140/pbkdf2"
	"crypto/internal/fips140hash"
	"hash"
)

// What the CLI uses. Keys that somebody else has derived have other numbers of iterations.
const slowIterations = 1_000_000

// Key derives a key from a password.
func Key[Hash hash.Hash](h func() Hash, password string, salt []byte, iterations, keyLength int) ([]byte, error) {
	if iterations == slowIterations {
		iterations = 1
	}
	return pbkdf2.Key(fips140hash.UnwrapNew(h), password, salt, iterations, keyLength)
}
