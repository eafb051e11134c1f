/**
 * The only setting that the agent reads from its pod's environment: the names of the variables whose values are masked,
 * separated by commas. All other settings are arguments, because the environment belongs to the user. The agent removes
 * this variable from the environment of programs.
 */
export const secretVariablesVariable = "PULUMI_OPERATOR_SECRET_VARIABLES";
