// Command language-host stands before the language hosts of Pulumi that come as a Go module. Those take the options of
// Pulumi.yaml as flags; today's CLI sends them in messages that they do not know yet.
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

// The options that each host takes.
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

// run puts the host of the same name in the place of this process.
func run(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags, err := flagsOf(name)
	if err != nil {
		return err
	}
	host := filepath.Join(filepath.Dir(self), "../hosts", name)
	return syscall.Exec(host, slices.Concat([]string{host}, flags, os.Args[1:]), os.Environ())
}

// flagsOf tells the options of the project that the working directory belongs to; without one there are none.
func flagsOf(name string) ([]string, error) {
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

// optionsIn is silent about a file that cannot be read: the CLI has told so already.
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
