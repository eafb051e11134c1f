/** Lists of globs, some of which exclude, with the semantics of Pulumi Deployments. */

/** Each glob matches whole names. A name is selected if it matches a glob, or there is none, and matches no glob that excludes. */
export function globSelector(globs: readonly string[]): (name: string) => boolean {
  const excludes = (glob: string): boolean => glob.startsWith("!");
  const included = globs.filter((glob) => !excludes(glob)).map((glob) => new Bun.Glob(glob));
  const excluded = globs.filter(excludes).map((glob) => new Bun.Glob(glob.slice(1)));
  const isIncluded = (name: string): boolean => included.length === 0 || included.some((glob) => glob.match(name));
  return (name) => isIncluded(name) && !excluded.some((glob) => glob.match(name));
}
