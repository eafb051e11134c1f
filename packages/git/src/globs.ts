/** Lists of globs, some of which exclude, with the semantics of Pulumi Deployments. */

/**
 * How much matching one selector does, in units of at most 3 ns. A star may be tried at every position of a name, so a match costs the
 * length of the name times that of the glob. Tenants choose both, and nothing else runs in the meantime.
 */
const defaultWork = 16_000_000;
/** Of the shortest glob with a star, for each byte of a name; and of a name that does not begin or end as a glob does. */
const leastWork = 16;
/** In characters. With more, alternatives in braces are not matched one by one. */
const maxExpanded = 2000;

interface Matcher {
  readonly glob: Bun.Glob;
  /** What every name begins and ends with that it matches. */
  readonly prefix: string;
  readonly suffix: string;
  /** To find out whether a name has these. */
  readonly checkWork: number;
  /** To match a name that has them, for each of its bytes. */
  readonly matchWork: number;
}

/** The work that is left: of one selector, or of several that share it. */
export interface WorkLeft {
  left: number;
}

/**
 * Each glob matches whole names. A name is selected if it matches a glob, or there is none, and matches no glob that excludes. When
 * matching has taken too long, every further name is selected: in doubt, it runs. So a selector is for one list of names.
 */
export function globSelector(globs: readonly string[], maxWork = defaultWork): (name: string) => boolean {
  const isSelected = limitedGlobs(globs);
  const work = { left: maxWork };
  return (name) => isSelected(name, work);
}

/** The same for any number of names, each of which takes from the work that the caller allows. */
export function limitedGlobs(globs: readonly string[]): (name: string, work: WorkLeft) => boolean {
  const excludes = (glob: string): boolean => glob.startsWith("!");
  const matchersOf = (glob: string): Matcher[] => alternativesOf(glob).map(matcherOf);
  const included = globs.filter((glob) => !excludes(glob)).flatMap(matchersOf);
  const excluded = globs.filter(excludes).flatMap((glob) => matchersOf(glob.slice(1)));
  return (name, work) => {
    const matches = ({ glob, prefix, suffix, checkWork, matchWork }: Matcher): boolean => {
      work.left -= checkWork;
      if (!name.startsWith(prefix) || !name.endsWith(suffix)) return false;
      work.left -= (Buffer.byteLength(name) + 1) * matchWork;
      return work.left >= 0 && glob.match(name);
    };
    const isSelected = work.left >= 0 && (included.length === 0 || included.some(matches)) && !excluded.some(matches);
    return isSelected || work.left < 0;
  };
}

/** A slash next to a star may be missing in a name that matches. */
function matcherOf(text: string): Matcher {
  const [prefix = ""] = /^[^*?[\]{}\\!]*/.exec(text) ?? [];
  const [, suffix = ""] = /[*?\]}]([^*?[\]{}\\!]*)$/.exec(text) ?? [];
  const isLiteral = prefix === text;
  return {
    glob: new Bun.Glob(text),
    prefix: prefix.replace(/\/$/, ""),
    suffix: suffix.replace(/^\//, ""),
    checkWork: leastWork + (prefix.length + suffix.length) / 16,
    matchWork: isLiteral ? 1 : (leastWork + Buffer.byteLength(text)) * alternativesIn(text),
  };
}

/** Groups of literal names, none of which is empty. */
const simpleGroups = /^(?:[^{}[\]\\!]|\{[^{},*?[\]\\!/]+(?:,[^{},*?[\]\\!/]+)*\})*$/;

/**
 * The same without braces: most alternatives begin or end differently than a name, which costs next to nothing. A glob with too many of
 * them, or with other groups, stays as it is.
 */
function alternativesOf(glob: string): readonly string[] {
  const isSmall = alternativesIn(glob) * glob.length <= maxExpanded;
  return isSmall && simpleGroups.test(glob) ? expanded(glob) : [glob];
}

function expanded(glob: string): readonly string[] {
  const [, before = "", group, after = ""] = /^([^{]*)\{([^}]*)\}(.*)$/s.exec(glob) ?? [];
  if (group === undefined) return [glob];
  const rests = expanded(after);
  return group.split(",").flatMap((each) => rests.map((rest) => `${before}${each}${rest}`));
}

/** How many globs without braces it stands for, at most: groups multiply them. */
function alternativesIn(glob: string): number {
  const open: number[] = [];
  let product = 1;
  for (const character of glob) {
    if (character === "{") open.push(1);
    else if (character === "}") product *= open.pop() ?? 1;
    else if (character === "," && open.length > 0) open.push((open.pop() ?? 1) + 1);
  }
  return open.reduce((all, each) => all * each, product);
}
