import { asObject, asString } from '../acp/tool-output.ts';
import type { Approvals } from '../approvals/approvals.ts';
import { decisionText } from '../approvals/decision-text.ts';
import { newId } from '../new-id.ts';
import type { SessionUpdates } from './session-updates.ts';

export interface PermissionOptions {
  readonly harness: string;
  readonly approvals: Pick<Approvals, 'ask'>;
  readonly updates: Pick<SessionUpdates, 'permission' | 'hold' | 'release'>;
  /** Aborts when the turn has ended or was cancelled, because the request then needs no answer. */
  readonly signal: AbortSignal;
  /** True: the turn has the mode `plan`, so no tool may change files or end the harness' own mode for plans. */
  readonly isPlanning: boolean;
  /** Called about each denial with a text for the harness; undefined: the person's message about the denial becomes the next turn. */
  readonly onDenied: (text: string | undefined) => void;
}

/** Kinds of tool calls that a turn with the mode `plan` denies. */
const changing: ReadonlySet<string> = new Set(['edit', 'delete', 'move', 'switch_mode']);

/**
 * Decides about a permission request of a harness, and waits for a person without a time limit if necessary. Returns the id of the
 * option to select, or undefined to cancel the request. Rejects when `signal` aborts.
 */
export async function answerPermission(
  params: Readonly<Record<string, unknown>>,
  { harness, approvals, updates, signal, isPlanning, onDenied }: PermissionOptions,
): Promise<string | undefined> {
  const asked = updates.permission(params.toolCall);
  const title = asked?.title ?? `something that ${harness} does not name`;
  const action = asked ?? { id: newId(), name: 'tool', category: 'integration' as const, input: {} };
  updates.hold(action.id);
  if (isPlanning && changing.has(asString(asObject(params.toolCall)?.kind) ?? '')) {
    updates.release(action.id, 'deny');
    onDenied(
      decisionText({ kind: 'permission', title }, { decision: 'deny', message: 'This turn only makes a plan.' }),
    );
    return optionFor('deny', params.options);
  }
  const verdict = await approvals.ask({ kind: 'permission', title, action, messageIsTurn: true }, signal);
  const decision = verdict.decision === 'approve' ? 'approve' : 'deny';
  updates.release(action.id, decision);
  if (decision === 'deny') {
    const isTurn = verdict.by === 'person' && verdict.message !== undefined;
    const text = decisionText({ kind: 'permission', title }, { decision, message: verdict.message });
    onDenied(isTurn ? undefined : text);
  }
  return optionFor(decision, params.options);
}

/**
 * Returns the option for `approve` or `deny`; undefined if the harness offers no such option. Prefers an option "once" to an option
 * "always", because some harnesses save the choice "always" in their settings.
 */
function optionFor(decision: 'approve' | 'deny', options: unknown): string | undefined {
  if (!Array.isArray(options)) return undefined;
  const knownOptions = options.map((option) => {
    const members = asObject(option);
    return { optionId: asString(members?.optionId), kind: asString(members?.kind) };
  });
  const kinds = decision === 'approve' ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  for (const kind of kinds) {
    const found = knownOptions.find((option) => option.kind === kind && option.optionId !== undefined);
    if (found !== undefined) return found.optionId;
  }
  return undefined;
}
