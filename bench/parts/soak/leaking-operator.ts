/**
 * An operator with a leak, to show that the soak test detects one: it keeps a copy of every response of the API server and
 * of agents, and a file open for every hundredth of them.
 */
import "./leak.ts";
import "../../../packages/operator/src/main.ts";
