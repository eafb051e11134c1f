package main

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	corev1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		settings := config.New(ctx, "")
		accessToken, err := corev1.NewSecret(ctx, "access-token", &corev1.SecretArgs{
			StringData: pulumi.StringMap{"accessToken": settings.RequireSecret("pulumiAccessToken")},
		})
		if err != nil {
			return err
		}
		_, err = apiextensions.NewCustomResource(ctx, "nginx", &apiextensions.CustomResourceArgs{
			ApiVersion: pulumi.String("pulumi.com/v1"),
			Kind:       pulumi.String("Stack"),
			Metadata:   metav1.ObjectMetaArgs{Name: pulumi.String("nginx")},
			OtherFields: kubernetes.UntypedArgs{
				"spec": stackSpec(settings.Require("stack"), accessToken.Metadata.Name()),
			},
		})
		return err
	})
}

func stackSpec(stack string, accessToken pulumi.StringPtrOutput) pulumi.Map {
	return pulumi.Map{
		"serviceAccountName": pulumi.String("pulumi"),
		"envRefs": pulumi.Map{
			"PULUMI_ACCESS_TOKEN": pulumi.Map{
				"type":   pulumi.String("Secret"),
				"secret": pulumi.Map{"name": accessToken, "key": pulumi.String("accessToken")},
			},
		},
		"stack":       pulumi.String(stack),
		"projectRepo": pulumi.String("https://github.com/pulumi/examples"),
		"repoDir":     pulumi.String("kubernetes-ts-nginx/"),
		// To pin a commit, set commit instead.
		"branch":            pulumi.String("master"),
		"destroyOnFinalize": pulumi.Bool(true),
	}
}
