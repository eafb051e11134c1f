/** A process with an alarm, for kernel-alarm.test.ts. It prints its progress, so that the test knows when to freeze it. */
import { kernelAlarm } from "../src/leader/kernel-alarm.ts";

const alarm = kernelAlarm();
if (!alarm) throw new Error("no alarm here");
const [, , mode] = Bun.argv;
alarm.set(5000);
if (mode === "clear") alarm.clear();
if (mode === "renew") setInterval(() => alarm.set(5000), 50);
console.log("set");
// What a frozen process would do when it resumes. The kernel's timer counts real time, which no test can set forward: that it was
// reset or cleared shows only after its 5 s.
setTimeout(() => console.log("continued"), 8000);
setTimeout(() => process.exit(0), 8100);
