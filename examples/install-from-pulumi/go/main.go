package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type configFile struct {
	pulumi.ResourceState
}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		settings := config.New(ctx, "")
		// The same as yaml.NewConfigFile of the SDK for Kubernetes, without compiling that SDK, which takes minutes.
		return ctx.RegisterRemoteComponentResource("kubernetes:yaml/v2:ConfigFile", "operator", pulumi.Map{
			"file": pulumi.String(settings.Require("manifest")),
		}, &configFile{}, pulumi.Version("4.23.0"))
	})
}
