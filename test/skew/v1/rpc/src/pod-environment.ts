/**
 * The one setting that reaches the agent by the environment of its pod: the names of the variables whose values are masked,
 * separated by commas. All else are arguments, because the environment is the user's. No program has a variable of this name.
 */
export const secretVariablesVariable = "PULUMI_OPERATOR_SECRET_VARIABLES";
