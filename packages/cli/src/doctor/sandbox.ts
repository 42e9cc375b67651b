import { findBubblewrap } from '@runyard/worker/find-bubblewrap';
import { probeSandbox } from '@runyard/worker/probe-sandbox';
import type { Context } from '../context/context.ts';
import { installCommand, withoutSandbox } from '../machine/sandbox-tool.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';

const name = 'sandbox';

/** Starts a sandbox in the same way as a worker. Reports how well the sandbox is isolated, and why features are missing. */
export async function checkSandbox(context: Context): Promise<Finding[]> {
  const { ok, reasons, level, about = [] } = await probeSandbox(context.settings);
  const facts = about.map((detail): Finding => ({ name: '  about', level: 'fact', detail: harmlessLine(detail) }));
  if (!ok) return [{ name, level: 'bad', detail: reasons.join('\n'), fix: await fix(context) }, ...facts];
  if (level.backend === 'none') {
    return [
      {
        name,
        level: 'note',
        detail: 'none (RUNYARD_SANDBOX=none): agents run as plain processes of your user',
        fix: 'unset RUNYARD_SANDBOX to use bubblewrap',
      },
    ];
  }
  return [
    { name, level: 'good', detail: `${level.backend}: ${level.features.join(', ')}` },
    ...facts,
    ...level.missing.map(
      ({ feature, reason }): Finding => ({ name: '  without', level: 'fact', detail: `${feature}: ${reason}` }),
    ),
  ];
}

async function fix(context: Context): Promise<string> {
  const backend = context.settings.RUNYARD_SANDBOX;
  if (backend === 'docker')
    return 'docs/isolation.md, "Sandboxes in containers"; or unset RUNYARD_SANDBOX to use bubblewrap';
  if (backend === 'kubernetes')
    return 'docs/isolation.md, "Sandboxes in a cluster"; or unset RUNYARD_SANDBOX to use bubblewrap';
  if (process.platform === 'linux' && !(await findBubblewrap())) {
    return `${installCommand(context.env.PATH)}\n${withoutSandbox}`;
  }
  if (backend === 'gvisor')
    return 'docs/isolation.md, "Sandboxes with gVisor"; or set RUNYARD_SANDBOX=bubblewrap: sandboxes then share the kernel of the machine';
  return `docs/isolation.md, "Where bubblewrap does not work"\n${withoutSandbox}`;
}
