import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { Fault } from '../../fault.ts';

/** Known harnesses that an installation must provide. */
const presets = ['claude', 'codex', 'gemini', 'opencode'];

/** Returns the harness of a run: `oz` (the built-in one) unless the configuration names another. */
export function checkHarness(
  config: AmbientAgentConfig,
): { ok: true; harness: 'oz' | 'acp' } | { ok: false; fault: Fault } {
  const { type = 'oz', command } = config.harness ?? {};
  const fault = (path: string, message: string) => ({
    ok: false as const,
    fault: { path: `config.harness.${path}`, message },
  });
  if (type === 'oz' || type === 'builtin') {
    return command === undefined ? { ok: true, harness: 'oz' } : fault('command', 'belongs to the harness acp');
  }
  if (type === 'acp') {
    return command === undefined
      ? fault('command', 'is required: the ACP agent to start, for example ["my-agent", "--acp"]')
      : { ok: true, harness: 'acp' };
  }
  if (presets.includes(type)) {
    return fault(
      'type',
      `${type} is not available here; use oz, or acp with the command of an agent that the sandbox has`,
    );
  }
  return fault('type', `unknown harness ${JSON.stringify(type.slice(0, 100))}; known are oz and acp`);
}
