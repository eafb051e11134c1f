using Pulumi;
using Pulumi.Kubernetes.Types.Inputs.Yaml.V2;
using Pulumi.Kubernetes.Yaml.V2;

return await Deployment.RunAsync(() =>
{
    var config = new Config();
    new ConfigFile("operator", new ConfigFileArgs { File = config.Require("manifest") });
});
