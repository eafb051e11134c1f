import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import Secret

config = pulumi.Config()

access_token = Secret(
    "access-token",
    string_data={"accessToken": config.require_secret("pulumiAccessToken")},
)

CustomResource(
    "nginx",
    api_version="pulumi.com/v1",
    kind="Stack",
    metadata={"name": "nginx"},
    spec={
        "serviceAccountName": "pulumi",
        "envRefs": {
            "PULUMI_ACCESS_TOKEN": {
                "type": "Secret",
                "secret": {"name": access_token.metadata.name, "key": "accessToken"},
            },
        },
        "stack": config.require("stack"),
        "projectRepo": "https://github.com/pulumi/examples",
        "repoDir": "kubernetes-ts-nginx/",
        # To pin a commit, set commit instead.
        "branch": "master",
        "destroyOnFinalize": True,
    },
)
