/** The sender of an event of a GitHub App. */
import type { RunCheckout } from '../../../runs/runs/read/checkout.ts';

/**
 * Decides about the rights of the runs of an event. `repository`: only a person with write access to the repository can cause the event, and
 * its runs have the rights of the automation. `member`: a member of the team who has linked the account caused it; the runs have the same
 * rights. `outsider`: anybody else; the runs have no secrets and no credentials, and start only if the trigger names the association. `app`: a
 * program, which starts nothing.
 */
export type SenderTrust = 'repository' | 'member' | 'outsider' | 'app';

/** The sender of an event, as the log of the webhook keeps it. The signature of GitHub covers all of it. */
export interface EventSender {
  readonly trust: SenderTrust;
  /** GitHub's numeric id of the account. */
  readonly id: number;
  readonly login: string;
  /** UID of the person who has linked the account; absent: no person has. A viewer of the team is an outsider too. */
  readonly person?: string | undefined;
  /** The issue, pull request or review thread of the event; absent: it has none. */
  readonly place_id?: string | undefined;
  /** The head of the pull request on which the runs of the event work; absent: they work on the branches of their environments. */
  readonly checkout?: RunCheckout | undefined;
  /** True: the App itself caused the event, such as checks of a commit that a run has pushed. Only `own_pull_request` accepts it. */
  readonly is_own?: boolean | undefined;
  /** The pull request of a run of the team that the event is about; absent: it is about none. */
  readonly pull_request?: PullRequestOfRun | undefined;
  /** URL of the pull request that the event is about, in the canonical form of artifacts; absent: it is about none. */
  readonly about?: string | undefined;
}

/** A pull request whose branch a run has pushed. */
export interface PullRequestOfRun {
  /**
   * Address of the pull request for which starts are counted, in the canonical form of artifacts. This is the pull request of the event, or,
   * if a counted run has opened that one, the first pull request of the chain.
   */
  readonly url: string;
  /** Of checks: the commit that they checked. */
  readonly head?: string | undefined;
}
