/** What the operator does at a forge, the same for all of them. */
export const forgeTypes = ["GitHub", "GitLab", "Gitea", "Bitbucket", "BitbucketDataCenter"] as const;
/** Gitea includes Forgejo; Bitbucket is Bitbucket Cloud, as for Receivers. */
export type ForgeType = (typeof forgeTypes)[number];

export interface ForgeTarget {
  readonly type: ForgeType;
  /** The root of the API. Absent for github.com, gitlab.com and bitbucket.org. */
  readonly url?: string;
  /** `owner/name`; with GitLab also `group/subgroup/name`, with Bitbucket Data Center `PROJECT/name`. */
  readonly repository: string;
}

export type ForgeCredentials = (
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
) & {
  /** Certificates of the server's private CA, in PEM. */
  readonly ca?: string;
};

export type CommitState = "pending" | "running" | "success" | "failure" | "error";

export interface CommitStatus {
  /** What the status is about, such as `pulumi/<namespace>/<stack>`. A later status with the same context replaces it. */
  readonly context: string;
  readonly state: CommitState;
  /** Shortened to 140 characters. */
  readonly description: string;
  readonly url?: string;
}

export interface PullRequest {
  readonly number: number;
  readonly title: string;
  readonly url: string;
  readonly head: {
    readonly ref: string;
    /** Not a full hash if the forge no longer has the commit. */
    readonly commit: string;
    /** The repository of the commit, such as `owner/name`. Undefined if it can be fetched from the target of the pull request. */
    readonly repository?: string;
  };
  readonly base: { readonly ref: string };
  readonly labels: readonly string[];
  /** The head is in another repository. */
  readonly isFork: boolean;
  readonly isDraft: boolean;
}

export interface Comment {
  /** Identifies the comment among others: letters, digits, and `:._/-`. It is part of the comment, but not shown. */
  readonly marker: string;
  /** Markdown, at most `maxCommentLength`. */
  readonly body: string;
  /** The ID that an earlier call returned. */
  readonly known?: string;
}

export interface PullRequestList {
  readonly pullRequests: readonly PullRequest[];
  /** Whether these are all. */
  readonly isComplete: boolean;
}

/** Every function throws a ForgeError if the forge does not do what is requested. */
export interface Forge {
  setStatus(commit: string, status: CommitStatus): Promise<void>;
  /** Open pull requests, newest first, at most `limit`. */
  openPullRequests(limit: number): Promise<PullRequestList>;
  /** Undefined if the pull request is not open, or does not exist. */
  openPullRequest(number: number): Promise<PullRequest | undefined>;
  /** Creates the comment with this marker, or replaces its text. Returns its ID. */
  putComment(pullRequest: number, comment: Comment): Promise<string>;
}

/** In characters, with room for the marker. Forges reject longer comments. */
export const maxCommentLength: Readonly<Record<ForgeType, number>> = {
  GitHub: 60_000,
  GitLab: 60_000,
  Gitea: 60_000,
  Bitbucket: 32_000,
  BitbucketDataCenter: 32_000,
};
