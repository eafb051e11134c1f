// Package zxcvbn replaces two packages of the same name in the Pulumi CLI that tests start thousands of times. At each
// start, these decode lists of frequent words: most of the CPU time of a short command. The CLI needs them only to rate
// a value that is set without --plaintext or --secret.
package zxcvbn

// Match is the part of a rating that the CLI reads.
type Match struct {
	Entropy float64
}

// PasswordStrength is not available.
func PasswordStrength(string, []string) Match {
	panic("this build of the CLI cannot rate values: use --plaintext or --secret")
}
