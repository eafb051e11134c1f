import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();

const kept = new pulumi.Stash("kept", { input: config.requireSecret("password") });

export const greeting = `Hello, ${config.require("who")}!`;
export const times = config.requireNumber("times");
export const password = kept.output;
