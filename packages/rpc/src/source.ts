/** The request of `prepare`: the program's source, and the stacks with their configuration. */
import { Type, type Static } from "typebox";

const closed = { additionalProperties: false } as const;

export const GitAuth = Type.Union([
  Type.Object({ kind: Type.Literal("token"), token: Type.String({ minLength: 1, maxLength: 16_384 }) }, closed),
  Type.Object(
    {
      kind: Type.Literal("basic"),
      username: Type.String({ maxLength: 1024 }),
      password: Type.String({ maxLength: 16_384 }),
    },
    closed,
  ),
  Type.Object(
    {
      kind: Type.Literal("ssh"),
      privateKey: Type.String({ minLength: 1, maxLength: 65_536 }),
      passphrase: Type.Optional(Type.String({ maxLength: 4096 })),
      /** Lines of a known_hosts file. There is no trust on first use: a host without a match is rejected. */
      knownHosts: Type.String({ maxLength: 262_144 }),
    },
    closed,
  ),
]);
export type GitAuth = Static<typeof GitAuth>;

/** The agent reports whether a file that the filters select differs from that of an earlier commit. */
const CompareWith = Type.Object(
  {
    commit: Type.String({ minLength: 1, maxLength: 64 }),
    /** Globs of paths from the root; with a leading "!", files are excluded. */
    pathFilters: Type.Array(Type.String({ minLength: 1, maxLength: 512 }), { maxItems: 64 }),
  },
  closed,
);

export const GitSource = Type.Object(
  {
    kind: Type.Literal("git"),
    url: Type.String({ minLength: 1, maxLength: 2048 }),
    /** The exact commit. With it, `ref` is only for servers that refuse to serve a commit by its hash. */
    commit: Type.Optional(Type.String({ maxLength: 64 })),
    /** A branch, a tag or a full ref name. */
    ref: Type.Optional(Type.String({ maxLength: 512 })),
    /** False fetches the full history, for programs that read it. */
    shallow: Type.Optional(Type.Boolean()),
    /** The project's folder within the repository. */
    dir: Type.Optional(Type.String({ maxLength: 1024 })),
    auth: Type.Optional(GitAuth),
    /** Certificates of a private CA, in PEM. */
    ca: Type.Optional(Type.String({ maxLength: 262_144 })),
    compareWith: Type.Optional(CompareWith),
  },
  closed,
);
export type GitSource = Static<typeof GitSource>;

export const FluxSource = Type.Object(
  {
    kind: Type.Literal("flux"),
    url: Type.String({ minLength: 1, maxLength: 2048 }),
    /** `sha256:…` (or sha384, sha512), verified before unpacking. */
    digest: Type.String({ minLength: 1, maxLength: 256 }),
    dir: Type.Optional(Type.String({ maxLength: 1024 })),
    /** The limit for the unpacked artifact; -1 for none. */
    maxUnpackedBytes: Type.Optional(Type.Integer({ minimum: -1 })),
  },
  closed,
);
export type FluxSource = Static<typeof FluxSource>;

export const FilesSource = Type.Object(
  {
    kind: Type.Literal("files"),
    /** Contents by path, relative to the project's folder. */
    files: Type.Record(Type.String({ minLength: 1, maxLength: 512 }), Type.String()),
    /** The revision to report: a Program's generation. */
    revision: Type.Optional(Type.String({ maxLength: 256 })),
  },
  closed,
);
export type FilesSource = Static<typeof FilesSource>;

const LocalSource = Type.Object(
  {
    kind: Type.Literal("local"),
    /** An absolute folder in the workspace's image or in one of its volumes. It is used in place and never written to. */
    dir: Type.String({ minLength: 1, maxLength: 1024 }),
  },
  closed,
);
type LocalSource = Static<typeof LocalSource>;

/** A minimal project without a source, to destroy a stack whose source no longer exists. */
export const ProjectSource = Type.Object(
  {
    kind: Type.Literal("project"),
    name: Type.String({ minLength: 1, maxLength: 256 }),
    runtime: Type.String({ minLength: 1, maxLength: 64 }),
  },
  closed,
);
export type ProjectSource = Static<typeof ProjectSource>;

export const Source = Type.Union([GitSource, FluxSource, FilesSource, LocalSource, ProjectSource]);
export type Source = Static<typeof Source>;

/** Where a configuration value comes from: the request, or the environment or files of the workspace. */
export const ConfigValue = Type.Union([
  Type.Object({ from: Type.Literal("value"), value: Type.Unknown() }, closed),
  Type.Object(
    {
      from: Type.Literal("env"),
      name: Type.String({ minLength: 1, maxLength: 512 }),
      /** Parse the text as JSON. */
      json: Type.Optional(Type.Boolean()),
    },
    closed,
  ),
  Type.Object(
    {
      from: Type.Literal("file"),
      path: Type.String({ minLength: 1, maxLength: 1024 }),
      json: Type.Optional(Type.Boolean()),
    },
    closed,
  ),
]);
export type ConfigValue = Static<typeof ConfigValue>;

export const ConfigItem = Type.Object(
  {
    key: Type.String({ minLength: 1, maxLength: 512 }),
    value: ConfigValue,
    secret: Type.Optional(Type.Boolean()),
    /** The key is a path into an object or array, as with `pulumi config set --path`. */
    path: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type ConfigItem = Static<typeof ConfigItem>;

export const StackSettings = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 512 }),
    /** False if the stack must already exist. */
    create: Type.Boolean(),
    /** Used when the stack is created. */
    secretsProvider: Type.Optional(Type.String({ maxLength: 2048 })),
    /** The complete configuration, apart from the program's own settings file. */
    config: Type.Array(ConfigItem, { maxItems: 4096 }),
    /** ESC environments to import after those in the program's own settings file. */
    environments: Type.Array(Type.String({ minLength: 1, maxLength: 512 }), { maxItems: 256 }),
  },
  closed,
);
export type StackSettings = Static<typeof StackSettings>;

/** The version of a CLI, as an earlier agent reported it for the same executable. */
export const KnownCli = Type.Object(
  {
    cli: Type.String({ minLength: 1, maxLength: 128 }),
    version: Type.String({ minLength: 1, maxLength: 128 }),
  },
  closed,
);
export type KnownCli = Static<typeof KnownCli>;

export const maxKnownClis = 8;

export const PrepareRequest = Type.Object(
  {
    source: Source,
    /** The Pulumi stacks that runs may use. Version 1 has exactly one. */
    stacks: Type.Array(StackSettings, { maxItems: 64 }),
    /** If the agent's CLI is among them, it need not be started to read its version. Not a part of what is prepared. */
    knownClis: Type.Optional(Type.Array(KnownCli, { maxItems: maxKnownClis })),
    /** The names of the Workspace and of its Stack, for the agent's log. */
    origin: Type.Optional(
      Type.Object(
        {
          workspace: Type.String({ minLength: 1, maxLength: 253 }),
          stack: Type.Optional(Type.String({ minLength: 1, maxLength: 253 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type PrepareRequest = Static<typeof PrepareRequest>;
