import pulumi
from pulumi_kubernetes.yaml.v2 import ConfigFile

config = pulumi.Config()

ConfigFile("operator", file=config.require("manifest"))
