/** Loaded before the tests of a mutant: gives them its source instead of the file's. No file is changed. */
import { plugin } from "bun";

const { MUTANT_FILE: file, MUTANT_SOURCE: contents } = process.env;
if (file === undefined || contents === undefined) throw new Error("MUTANT_FILE and MUTANT_SOURCE are not set");

plugin({
  name: "mutant",
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(file)}$`) }, () => ({ contents, loader: "ts" }));
  },
});
