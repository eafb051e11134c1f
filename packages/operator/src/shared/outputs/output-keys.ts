/** Where the outputs of a Stack are stored: one Secret per Stack, one key per output. */
export { outputKeyOf, stackOutputsSecretOf } from "@pko/api";
