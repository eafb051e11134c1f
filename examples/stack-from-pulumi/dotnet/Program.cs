using System.Collections.Generic;
using Pulumi;
using Pulumi.Kubernetes.ApiExtensions;
using Pulumi.Kubernetes.Core.V1;
using Pulumi.Kubernetes.Types.Inputs.Core.V1;
using Pulumi.Kubernetes.Types.Inputs.Meta.V1;

return await Deployment.RunAsync(() =>
{
    var config = new Config();
    var accessToken = new Secret("access-token", new SecretArgs
    {
        StringData = { { "accessToken", config.RequireSecret("pulumiAccessToken") } },
    });
    new Pulumi.Kubernetes.ApiExtensions.CustomResource("nginx", new NginxArgs
    {
        Metadata = new ObjectMetaArgs { Name = "nginx" },
        Spec = new InputMap<object>
        {
            { "serviceAccountName", "pulumi" },
            { "envRefs", AccessTokenFrom(accessToken) },
            { "stack", config.Require("stack") },
            { "projectRepo", "https://github.com/pulumi/examples" },
            { "repoDir", "kubernetes-ts-nginx/" },
            // To pin a commit, set commit instead.
            { "branch", "master" },
            { "destroyOnFinalize", true },
        },
    });
});

static Output<object> AccessTokenFrom(Secret secret) =>
    secret.Metadata.Apply(metadata => (object)new Dictionary<string, object>
    {
        ["PULUMI_ACCESS_TOKEN"] = new Dictionary<string, object>
        {
            ["type"] = "Secret",
            ["secret"] = new Dictionary<string, object> { ["name"] = metadata.Name, ["key"] = "accessToken" },
        },
    });

class NginxArgs : CustomResourceArgs
{
    [Input("spec")]
    public InputMap<object>? Spec { get; set; }

    public NginxArgs() : base("pulumi.com/v1", "Stack")
    {
    }
}
