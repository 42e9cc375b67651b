import { CreateAutomationRequest } from '@runyard/contract/automations/automations';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { automations } from './automations.ts';

function helpOf(name: string): string {
  let printed = '';
  const program = new Command('runyard').exitOverride().configureOutput({
    writeOut: (text) => {
      printed += text;
    },
  });
  const noun = program.command('automations');
  for (const row of automations) row(noun);
  expect(() => program.parse(['automations', name, '--help'], { from: 'user' })).toThrow();
  return printed;
}

test.each(['create', 'update'])('the help of %s has an example that the service accepts', (name) => {
  const [, json = ''] = /with the UID of a webhook:\n([\s\S]*?)\nor at times/.exec(helpOf(name)) ?? [];
  const body = JSON.parse(json.replace('"UID"', JSON.stringify('a'.repeat(22))));
  expect(CreateAutomationRequest.safeParse(body).error?.issues).toBeUndefined();
});
