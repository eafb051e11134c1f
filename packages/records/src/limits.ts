/** The limits of events and records. What exceeds them is cut after secrets have been masked, and counted. */

/** The longest message of a diagnostic or an error. */
export const maxMessageChars = 16 * 1024;
/** The longest URN. */
export const maxUrnChars = 4096;
/** The longest ID that a provider gives a resource. */
export const maxIdChars = 1024;
/** How many changed properties an event lists. */
export const maxPropertyChanges = 64;
/** The longest path of a property. */
export const maxPathChars = 256;
/** The longest old or new value of a property, as JSON. */
export const maxValueChars = 512;
/** All values of an event: container runtimes split lines of the log after 16 KiB. Further changes have no values. */
export const maxEventValueChars = 8 * 1024;
/** The compressed content of a record, in bytes before base64. With its other fields, a record has at most 64 KiB. */
export const maxContentBytes = 42 * 1024;
