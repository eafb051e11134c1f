package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		settings := config.New(ctx, "")
		kept, err := pulumi.NewStash(ctx, "kept", &pulumi.StashArgs{Input: settings.RequireSecret("password")})
		if err != nil {
			return err
		}
		ctx.Export("greeting", pulumi.Sprintf("Hello, %s!", settings.Require("who")))
		ctx.Export("times", pulumi.Int(settings.RequireInt("times")))
		ctx.Export("password", kept.Output)
		return nil
	})
}
