using System.Collections.Generic;
using Pulumi;

return await Deployment.RunAsync(() =>
{
    var config = new Config();
    var kept = new Stash("kept", new StashArgs
    {
        Input = config.RequireSecret("password").Apply(password => (object)password),
    });

    return new Dictionary<string, object?>
    {
        ["greeting"] = $"Hello, {config.Require("who")}!",
        ["times"] = config.RequireInt32("times"),
        ["password"] = kept.Output,
    };
});
