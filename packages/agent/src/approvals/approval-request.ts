import { maxResumeLength } from '@runyard/contract/limits';
import type { AgentRequest, Decision } from '@runyard/contract/runs/approvals';
import { askedInputFault } from '@runyard/contract/runs/asked-input';
import { shorten } from '@runyard/contract/wire/shorten';
import { actionId } from '../acp/action-id.ts';
import { createHash } from '../builtin-modules.ts';

/**
 * A permission or a question about which the policy or a person decides. A permission request has the action with the whole input of the
 * action.
 */
export interface ApprovalRequest extends Pick<AgentRequest, 'kind' | 'title' | 'options' | 'resume' | 'rest_of_run'> {
  readonly action?: { readonly id: string } & Pick<NonNullable<AgentRequest['action']>, 'name' | 'category' | 'input'>;
  /**
   * True: the harness accepts only a decision as an answer, and no message. So if a person sends only a message, the agent denies the
   * request. The message of a denial becomes the next turn.
   */
  readonly messageIsTurn?: boolean;
  /** Id of the request if the service holds the action until the answer. Then the policy does not decide. The service writes the request. */
  readonly held?: string;
  /** Saves the state that another sandbox needs to continue the run. The agent awaits this call before it asks a person. */
  readonly beforeAsked?: (requestId: string) => Promise<void>;
}

export interface Verdict {
  /** `answer`: the person sent a message without a decision. */
  readonly decision: Decision | 'answer';
  readonly by: 'person' | 'policy';
  readonly message?: string;
}

const maxTitleLength = 2_000;
const maxOptions = 20;
const maxOptionLength = 500;
const maxNameLength = 200;

/** Returns the title of a request, shortened to the limit of the service. */
export const requestTitle = (title: string): string => shorten(title, maxTitleLength);

/**
 * Returns the reason why this permission request cannot be shown to a person. A person must see the whole action to approve it. Returns
 * undefined if the request can be shown.
 */
export function unshowable({ kind, title, action }: ApprovalRequest): string | undefined {
  if (kind !== 'permission') return undefined;
  const fault = askedInputFault(action?.input);
  if (fault !== undefined)
    return `the input of ${shorten(action?.name ?? 'the action', maxNameLength)} cannot be shown in full to a person: ${fault}. Split the action into smaller ones, or put a long text into a file first`;
  const isEmpty = action === undefined || (JSON.stringify(action.input) ?? '{}').length <= 2;
  return isEmpty && title.length > maxTitleLength
    ? `the request has ${title.length} characters, and a person is shown at most ${maxTitleLength}`
    : undefined;
}

/** Returns a request in the form that the service stores and a person sees. */
export function requestForPerson(
  id: string,
  { kind, title, options, action, resume, rest_of_run: restOfRun }: ApprovalRequest,
): AgentRequest {
  return {
    request_id: id,
    kind,
    title: requestTitle(title),
    ...(options ? { options: options.slice(0, maxOptions).map((option) => shorten(option, maxOptionLength)) } : {}),
    ...(action
      ? {
          action: {
            id: actionId(action.id),
            name: shorten(action.name, maxNameLength),
            category: action.category,
            input: action.input,
            fingerprint: fingerprint(action),
          },
        }
      : {}),
    ...(restOfRun === undefined ? {} : { rest_of_run: restOfRun }),
    ...(resume === undefined || resume.length > maxResumeLength ? {} : { resume }),
  };
}

/** Returns the value as JSON with the members of each object in alphabetical order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}

/** Returns the SHA-256 of an action's name and input. If another sandbox repeats the action, the fingerprint is the same. */
export function fingerprint(action: { readonly name: string; readonly input: unknown }): string {
  return createHash('sha256')
    .update(canonical([action.name, action.input]))
    .digest('hex');
}
