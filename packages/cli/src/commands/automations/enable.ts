import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { automationHelp } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { findAutomation } from '../../service/named.ts';

/** Enables or disables an automation. After this, as after every change, runs of the automation act as the caller. */
async function setAutomation(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
  const client = connect(context);
  const {
    factory_uid: factoryUid,
    uid: automationUid,
    name,
    prompt,
    triggers,
    agent,
    config,
    overlap,
    concurrency_key,
  } = await findAutomation(client, uid);
  await client.updateAutomation({
    params: { factoryUid, automationUid },
    body: {
      name,
      prompt,
      triggers,
      overlap,
      enabled: action === 'enable',
      ...(agent === undefined ? {} : { agent }),
      ...(config === undefined ? {} : { config }),
      ...(concurrency_key === undefined ? {} : { concurrency_key }),
    },
  });
  context.out(`${automationUid} is ${action}d\n`);
}

/** Declares `enable` and `disable` of `automations`. */
export function declareSwitches(automations: Command): void {
  for (const action of ['enable', 'disable'] as const)
    automations
      .command(action)
      .description(action === 'enable' ? 'start runs again, as you' : 'start no more runs')
      .argument('<uid>', automationHelp)
      .action((uid) => setAutomation(processContext(), action, uid));
}
