import { type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { PolicyVerdict } from './content-policy.ts';

/** Returns the refusal of texts that the content policy forbids. */
export function refusedByPolicy({ kind, detail }: Exclude<PolicyVerdict, { kind: 'allowed' }>): Refusal {
  return kind === 'policy_violation'
    ? refuse('content_policy_violation', { detail })
    : refuse('resource_unavailable', { status: 503, detail, headers: { 'retry-after': '5' } });
}
