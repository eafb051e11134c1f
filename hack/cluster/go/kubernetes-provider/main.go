// Command kubernetes-provider is a Pulumi provider for the tests. It is named kubernetes, like the provider of
// @pulumi/kubernetes, whose Go module is not available to the test environment, and manages an object of any kind with
// server-side apply. It has the same types and identities, but does not wait until workloads are ready.
package main

import (
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// version is set by the linker.
var version = "0.0.0"

func main() {
	err := provider.Main("kubernetes", func(host *provider.HostClient) (pulumirpc.ResourceProviderServer, error) {
		return &kubernetesProvider{host: host}, nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
