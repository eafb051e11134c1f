import pulumi

config = pulumi.Config()

kept = pulumi.Stash("kept", input=config.require_secret("password"))

pulumi.export("greeting", f"Hello, {config.require('who')}!")
pulumi.export("times", config.require_int("times"))
pulumi.export("password", kept.output)
