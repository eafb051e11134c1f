/** For tests: what a plan is bound to. */
export const bindings = {
  target: "t",
  program: "p",
  options: "o",
  inputs: "i",
  image: "m",
  cli: "c",
  stackKey: "k",
  state: "s",
};
