/** Checks prompts and setup commands by the rules of the operator. */

import { type Refusal, refuse } from '../../platform/serving/refusal.ts';
import { askClassifier } from './classifier.ts';
import { openPatternThread, type PolicyText } from './pattern-thread.ts';
import { readPolicyFile } from './policy-file.ts';

export type { PolicyText } from './pattern-thread.ts';

/** Outcome of a check. The comment of each outcome begins with its HTTP status. The content policy logs no part of the texts. */
export type PolicyVerdict =
  | { readonly kind: 'allowed' }
  /** 403 `content_policy_violation` */
  | { readonly kind: 'policy_violation'; readonly detail: string }
  /** 503 `resource_unavailable`: the policy could not be checked now. */
  | { readonly kind: 'policy_unavailable'; readonly detail: string };

export interface ContentPolicy {
  /** Checks texts of a team. May take as long as the classifier, so do not call this function inside a transaction. Never throws. */
  check(teamId: string, texts: readonly PolicyText[]): Promise<PolicyVerdict>;
  close(): Promise<void>;
}

interface PolicyLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface PolicyOptions {
  readonly log: PolicyLog;
  /** Bearer token for the classifier. */
  readonly key: string | undefined;
  /** Maximum processor time for the patterns of one check, in milliseconds. Default: 5,000. */
  readonly limitMs?: number;
}

/**
 * Maximum number of characters of all texts of one check. A prompt of 1 MB, a base prompt of 1 MB and the commands of an environment
 * together have fewer characters.
 */
const maxCheckedLength = 4 * 1024 * 1024;

const nameOf = { prompt: 'The prompt', setup_command: 'A setup command' } as const;

/** Reads the policy from a file. Each problem contains the line and the fault. */
export async function openContentPolicy(
  file: string,
  { log, key, limitMs = 5_000 }: PolicyOptions,
): Promise<
  { readonly ok: true; readonly policy: ContentPolicy } | { readonly ok: false; readonly problems: string[] }
> {
  const read = await readPolicyFile(file);
  if (!read.ok) return read;
  const { rules, classifier } = read.value;
  const thread = openPatternThread(rules, limitMs);

  const checkPatterns = async (teamId: string, texts: readonly PolicyText[]): Promise<PolicyVerdict> => {
    if (rules.length === 0) return { kind: 'allowed' };
    const result = await thread.search(teamId, texts).catch((error: unknown) => {
      log.warn({ err: error }, 'the patterns of the content policy cannot be searched');
      return { kind: 'busy' } as const;
    });
    if (result.kind === 'none') return { kind: 'allowed' };
    if (result.kind === 'busy')
      return { kind: 'policy_unavailable', detail: 'The content policy cannot check the text now. Try again later.' };
    const rule = rules[result.rule];
    const name = rule?.name ?? '';
    if (result.kind === 'too_slow') {
      log.warn({ team_id: teamId, rule: name, limit_ms: limitMs }, 'a rule of the content policy took too long');
      const detail = `The text could not be checked by the rule "${name}" of the content policy in time. Shorten it, or ask the operator to simplify the rule.`;
      return { kind: 'policy_violation', detail };
    }
    log.info({ team_id: teamId, rule: name }, 'the content policy refused a text');
    const about = rule?.applies_to.length === 1 && rule.applies_to[0] ? nameOf[rule.applies_to[0]] : 'The text';
    const detail = `${about} breaks the rule "${name}" of the content policy.${rule?.message ? ` ${rule.message}` : ''}`;
    return { kind: 'policy_violation', detail };
  };

  const classify = async (teamId: string, all: readonly PolicyText[]): Promise<PolicyVerdict> => {
    const texts = classifier ? all.filter(({ kind }) => classifier.applies_to.includes(kind)) : [];
    if (!classifier || texts.length === 0) return { kind: 'allowed' };
    const result = await askClassifier(classifier, key, texts);
    switch (result.kind) {
      case 'allowed':
        return result;
      case 'refused': {
        log.info({ team_id: teamId, rule: 'classifier' }, 'the content policy refused a text');
        const detail = `The classifier of the content policy refused the text${result.reason ? `: ${result.reason}` : '.'}`;
        return { kind: 'policy_violation', detail };
      }
      case 'failed': {
        const fields = { team_id: teamId, reason: result.reason, on_failure: classifier.on_failure };
        log.warn(fields, 'the classifier of the content policy failed');
        if (classifier.on_failure === 'allow') return { kind: 'allowed' };
        const detail =
          'The content policy cannot be checked now, because its classifier does not answer. Try again later.';
        return { kind: 'policy_unavailable', detail };
      }
    }
  };

  const policy: ContentPolicy = {
    check: async (teamId, all) => {
      const texts = all.filter(({ text }) => text.trim() !== '');
      if (texts.length === 0) return { kind: 'allowed' };
      if (texts.reduce((sum, { text }) => sum + text.length, 0) > maxCheckedLength)
        return { kind: 'policy_violation', detail: 'The text is longer than the content policy checks. Shorten it.' };
      const matched = await checkPatterns(teamId, texts);
      return matched.kind === 'allowed' ? await classify(teamId, texts) : matched;
    },
    close: () => thread.close(),
  };
  return { ok: true, policy };
}

/** Returns the refusal of texts that the content policy forbids. */
export function refusedByPolicy({ kind, detail }: Exclude<PolicyVerdict, { kind: 'allowed' }>): Refusal {
  return kind === 'policy_violation'
    ? refuse('content_policy_violation', { detail })
    : refuse('resource_unavailable', { status: 503, detail, headers: { 'retry-after': '5' } });
}
