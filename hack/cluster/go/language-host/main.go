// Command language-host wraps the Pulumi language hosts that are built from a Go module. They take the options of
// Pulumi.yaml as flags; the current CLI sends the options in messages that they do not support yet.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// The options that each host supports.
var known = map[string][]string{
	"pulumi-language-nodejs": {"typescript", "tsconfig", "nodeargs"},
	"pulumi-language-python": {"virtualenv"},
	"pulumi-language-go":     {"binary", "buildTarget"},
}

func main() {
	if err := run(filepath.Base(os.Args[0])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run replaces this process with the host of the same name.
func run(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags, err := projectFlags(name)
	if err != nil {
		return err
	}
	host := filepath.Join(filepath.Dir(self), "../hosts", name)
	return syscall.Exec(host, slices.Concat([]string{host}, flags, os.Args[1:]), os.Environ())
}

// projectFlags returns the options of the project in the working directory or its parents as flags.
func projectFlags(name string) ([]string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(folder, "Pulumi.yaml"))
		if err == nil {
			return append([]string{"-root=" + folder}, optionsIn(text, known[name])...), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if folder == filepath.Dir(folder) {
			return nil, nil
		}
		folder = filepath.Dir(folder)
	}
}

// optionsIn ignores a file that cannot be parsed: the CLI has already reported it.
func optionsIn(text []byte, names []string) []string {
	var project struct {
		Runtime yaml.Node `yaml:"runtime"`
	}
	var runtime struct {
		Options map[string]any `yaml:"options"`
	}
	if yaml.Unmarshal(text, &project) != nil || project.Runtime.Decode(&runtime) != nil {
		return nil
	}
	var flags []string
	for _, name := range names {
		if value, ok := runtime.Options[name]; ok {
			flags = append(flags, fmt.Sprintf("-%s=%v", name, value))
		}
	}
	return flags
}
