/** A process with an alarm, for kernel-alarm.test.ts. It prints its progress, so that the test knows when to freeze it. */
import { kernelAlarm } from "../src/leader/kernel-alarm.ts";

const alarm = kernelAlarm();
if (!alarm) throw new Error("no alarm here");
const [, , mode] = Bun.argv;
/** A busy machine stalls for less than this. */
const alarmMs = 15_000;
alarm.set(alarmMs);
if (mode === "clear") alarm.clear();
if (mode === "renew") setInterval(() => alarm.set(alarmMs), 50);
console.log("set");
// What a frozen process would do when it resumes. The kernel's timer counts real time, which no test can set forward: that it was
// reset or cleared shows only after this time.
setTimeout(() => console.log("continued"), alarmMs + 3000);
setTimeout(() => process.exit(0), alarmMs + 3100);
