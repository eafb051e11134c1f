export { standInForge, type RecordedCall, type StandInForge, type StandInStatus } from "./stand-in.ts";
