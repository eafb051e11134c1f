// Every Kubernetes program of the local cluster in one binary: it acts as the program whose name it is called by,
// or as its first argument. One binary links the shared packages once, which makes the build minutes shorter.
// kubectl is a binary of its own: it runs often, and would initialize all of these packages each time.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return newKubeletCommand(kubelet.NewKubeletCommand) },
	"host-path-provisioner":   newProvisionerCommand,
}

// newKubeletCommand calls a constructor that takes a context only since Kubernetes 1.34.
func newKubeletCommand(constructor any) *cobra.Command {
	if newCommand, isOlder := constructor.(func() *cobra.Command); isOlder {
		return newCommand()
	}
	return constructor.(func(context.Context) *cobra.Command)(context.Background())
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kube" && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kube: no program named %q in this binary\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
