/** Times and durations for people: the same texts as in the console. */
export { absolute, durationText as duration, elapsed, relative } from "@pko/api";
